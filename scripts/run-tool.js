import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { installFolder } from './install.js';

/** What only checks and generators need, with a lock file of its own */
const CHECKERS = 'scripts/checkers';

/**
 * Runs the command of an installed package, and ends this process if it fails. The command is started with node rather
 * than by its name, which would take a shell on Windows.
 */
export function runTool(packageName, args, options) {
  return runCommand(`node_modules/${packageName}`, args, options);
}

/** Runs a command of a package of CHECKERS, which is installed now if it has not been. */
export function runCheckingTool(packageName, args, options) {
  installFolder(CHECKERS);
  return runCommand(`${CHECKERS}/node_modules/${packageName}`, args, options);
}

function runCommand(folder, args, options) {
  const { bin } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const path = typeof bin === 'string' ? bin : Object.values(bin)[0];
  return run(process.execPath, [`${folder}/${path}`, ...args], options);
}

/** Runs a program, ends this process if it fails, and returns its standard output if that is piped, as `input` is then. */
export function run(program, args, { environment = {}, stdio = 'inherit', input } = {}) {
  const env = { ...process.env, ...environment };
  const { status, error, stdout } = spawnSync(program, args, { env, stdio, input });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
  return stdout;
}
