/**
 * The service (`main`) or its command line (`cli`), as its first argument says, with a deprecated operation, which the store may
 * not have. It imports what that needs, as the two do, because the whole takes longer to load.
 */
const [script] = process.argv.splice(2, 1);

async function loadResources() {
  const { deprecated } = await import('./deprecated-operation.js');
  const { resources } = await import('./operations-under-test.js');
  return [...resources, deprecated.resource];
}

if (script === 'main') {
  const { run } = await import('../../src/platform/run.js');
  await run({ resources: await loadResources() });
} else {
  const { runCommand } = await import('../../src/platform/cli/program.js');
  await runCommand({ loadResources });
}

// It exports nothing, and is a module all the same.
export {};
