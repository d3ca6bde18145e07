import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';

/*
 * Changes lines of src/ at random, one at a time, and runs the tests of each: `npm run mutate -- --count=200`. What no test
 * notices is printed at the end: a promise without a test, or a line that keeps none. A run with the printed seed on the
 * same commit makes the same changes. It works on a copy of the last commit.
 *
 *   --count=N      how many lines, 20 by default
 *   --seed=N       of the choice, random by default
 *   --under=PATH   only files whose path starts with it, src/ by default
 *   --quick        runs only the tests in the folder that mirrors the line's own: test/pets/*.test.ts for src/pets/store.ts.
 *                  What lives may be noticed elsewhere
 *   --timeout=N    seconds for the tests of one run, 300 by default. What takes longer is named apart: the change has ended
 *                  what a test waits for, or the machine is busy
 *   --list         names the changes and tries none
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    under: { type: 'string', default: 'src/' },
    quick: { type: 'boolean', default: false },
    timeout: { type: 'string', default: '300' },
    list: { type: 'boolean', default: false },
  },
});

/** Each replaces the first match in a line. What looks like a type, an import or a comment is left alone. */
const MUTATIONS = [
  [/ === /, ' !== '],
  [/ !== /, ' === '],
  [/ < /, ' <= '],
  [/ <= /, ' < '],
  [/ > /, ' >= '],
  [/ >= /, ' > '],
  [/ && /, ' || '],
  [/ \|\| /, ' && '],
  [/ \+ /, ' - '],
  [/ - /, ' + '],
  [/ \+= /, ' -= '],
  [/\btrue\b/, 'false'],
  [/\bfalse\b/, 'true'],
  [/Math\.min\(/, 'Math.max('],
  [/Math\.max\(/, 'Math.min('],
  [/\b(\d[\d_]*)\b(?!['"`])/, (number) => String(Number(number.replaceAll('_', '')) + 1)],
  [/^(\s+)if \((.+)\) (return|throw|continue)/, '$1if (!($2)) $3'],
  [/^(\s+)[\w.#]+\([^()]*\);$/, '$1'],
];
const SKIPPED = /^\s*(?:\/\/|\*|\/\*|import |export type|type |interface |readonly |declare )|^\s*$/;

const root = process.cwd();
const random = createRandom(Number(values.seed));
const copy = mkdtempSync(join(tmpdir(), 'animal-store-mutants-'));
process.on('exit', () => {
  run('git', ['worktree', 'remove', '--force', copy], root);
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

process.stdout.write(`Seed ${values.seed}\n`);
prepareCopy();
const mutants = choose(listMutants(), Number(values.count));
if (values.list) for (const mutant of mutants) process.stdout.write(`${describe(mutant)}\n`);
else await tryMutants(mutants);

async function tryMutants(mutants) {
  const unnoticed = { lived: [], timeout: [] };
  for (const mutant of mutants) {
    // Lets a signal that came meanwhile end the run.
    await setImmediate();
    const outcome = tryMutant(mutant);
    process.stdout.write(`${outcome.padEnd(8)} ${describe(mutant)}\n`);
    unnoticed[outcome]?.push(mutant);
  }
  for (const [outcome, those] of Object.entries(unnoticed)) {
    process.stdout.write(`\n${those.length} of ${mutants.length}: ${outcome}, with seed ${values.seed}\n`);
    for (const mutant of those) process.stdout.write(`  ${describe(mutant)}\n`);
  }
}

/** A work tree of the last commit, with the packages and the build of this one. */
function prepareCopy() {
  const { status, stderr } = run('git', ['worktree', 'add', '--detach', copy, 'HEAD'], root);
  if (status !== 0) throw new Error(stderr);
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'packages'))) {
    const modules = join(root, 'packages', name, 'node_modules');
    if (existsSync(modules)) symlinkSync(modules, join(copy, 'packages', name, 'node_modules'));
  }
  if (!values.list && run('npm', ['run', 'build'], copy).status !== 0)
    throw new Error('The last commit does not build.');
}

/** Every change that can be made to a line, as its file, its number and its new text. */
function listMutants() {
  const files = readdirSync(join(copy, 'src'), { recursive: true })
    .map((name) => `src/${name.split(sep).join('/')}`)
    .filter((path) => path.endsWith('.ts') && path.startsWith(values.under) && !path.includes('/generated/'))
    .sort();
  return files.flatMap((path) => {
    const lines = readFileSync(join(copy, path), 'utf8').split('\n');
    return lines.flatMap((line, index) =>
      SKIPPED.test(line)
        ? []
        : MUTATIONS.filter(([pattern]) => pattern.test(line)).map(([pattern, replacement]) => ({
            path,
            index,
            line,
            mutated: line.replace(pattern, replacement),
          })),
    );
  });
}

/** Lines without repetition: of a line, one change. */
function choose(mutants, count) {
  const byLine = new Map();
  for (const mutant of mutants) {
    const line = `${mutant.path}:${mutant.index}`;
    byLine.set(line, [...(byLine.get(line) ?? []), mutant]);
  }
  const lines = [...byLine.values()];
  const chosen = [];
  while (chosen.length < count && lines.length > 0) {
    const [candidates] = lines.splice(Math.floor(random() * lines.length), 1);
    chosen.push(candidates[Math.floor(random() * candidates.length)]);
  }
  return chosen;
}

/** The tests that mirror the file's folder first, then all that import it. */
function tryMutant({ path, index, mutated }) {
  const file = join(copy, path);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.split('\n').with(index, mutated).join('\n'));
  try {
    const folder = dirname(path).replace(/^src/, 'test');
    if (values.quick) return runTests(path, ['run', ...listTests(folder)]);
    const isMirrored = folder !== 'test' && existsSync(join(copy, folder));
    const outcome = isMirrored ? runTests(path, ['run', `${folder}/`]) : 'lived';
    return outcome === 'lived' ? runTests(path, ['related', path, '--run']) : outcome;
  } finally {
    writeFileSync(file, text);
  }
}

/** The test files in a folder, without those in the folders in it. */
function listTests(folder) {
  if (!existsSync(join(copy, folder))) return [];
  return readdirSync(join(copy, folder))
    .filter((name) => name.endsWith('.test.ts') && !name.endsWith('.slow.test.ts'))
    .map((name) => `${folder}/${name}`);
}

function runTests(path, args) {
  if (args.length === 1) return 'lived';
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs');
  const { status, error } = run(
    process.execPath,
    [
      ...[vitest, ...args, '--exclude', '**/*.slow.test.ts', '--bail', '1', '--reporter=dot'],
      ...['--config', 'scripts/mutate.vitest.config.js'],
    ],
    copy,
    { timeout: Number(values.timeout) * 1000, env: { ...process.env, MUTATED_FILE: path } },
  );
  if (error?.code === 'ETIMEDOUT') return 'timeout';
  return status === 0 ? 'lived' : 'noticed';
}

function run(program, args, cwd, options) {
  return spawnSync(program, args, { ...options, cwd, encoding: 'utf8', maxBuffer: 2 ** 27 });
}

function describe({ path, index, line, mutated }) {
  return `${path}:${index + 1}: ${line.trim()}  →  ${mutated.trim() || 'removed'}`;
}

/** mulberry32, so that a seed gives the same numbers on every machine. */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
