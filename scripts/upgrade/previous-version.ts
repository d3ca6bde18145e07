import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorError } from '@animal-store/platform/development';
import { untilEnded } from './service.js';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

type Previous =
  | { readonly commit: string; readonly name: string }
  /** `isKnown`: it is certain that there is none */
  | { readonly commit: undefined; readonly reason: string; readonly isKnown: boolean };

/** The npm scope of this repository's packages */
const OWN_SCOPE = '@animal-store';
/** The tags of releases, among others */
const RELEASES = 'v[0-9]*';

/**
 * The commit of the previous version: the named commit, or that of the last tag of a release.
 *
 * @throws OperatorError where there is no such commit, or no repository
 */
export function findPrevious(wanted: string | undefined, folder = ROOT): Previous {
  const git = (...args: readonly string[]) => readGit(folder, args);
  const isShallow = git('rev-parse', '--is-shallow-repository');
  if (isShallow === undefined)
    throw new OperatorError('The previous version is built from a clone of git, and this is not one.');
  const advice = isShallow === 'true' ? ' This clone is shallow: git fetch --unshallow --tags' : '';
  // The previous version of a commit that is itself a release is the release before.
  const from = git('tag', '--points-at', 'HEAD', '--list', RELEASES) ? 'HEAD^' : 'HEAD';
  const name = wanted ?? git('describe', '--tags', '--abbrev=0', '--match', RELEASES, from);
  if (name === undefined) {
    const reason =
      advice === '' ? 'There is no previous version: nothing is tagged.' : `No tag is known.${advice}`;
    return { commit: undefined, reason, isKnown: advice === '' };
  }
  const commit = git('rev-parse', '--verify', '--quiet', `${name}^{commit}`);
  if (commit === undefined)
    throw new OperatorError(`There is no commit ${JSON.stringify(name)}.${advice}`, { exitCode: 2 });
  return { commit, name };
}

/** The output of a command of git; undefined if it fails. */
function readGit(cwd: string, args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** Builds a commit within a folder, and resolves with where. The repository keeps no trace of it. */
export async function buildPrevious(commit: string, folder: string, signal: AbortSignal): Promise<string> {
  const build = join(folder, 'previous');
  const archive = join(folder, 'previous.tar');
  await mkdir(build);
  await run('git', ['archive', '--output', archive, commit], { cwd: ROOT, signal });
  await run('tar', ['-xf', archive, '-C', build], { cwd: ROOT, signal });
  process.stderr.write('Building the previous version …\n');
  await installPackages(build, signal);
  await run(process.execPath, ['scripts/build.js'], { cwd: build, signal });
  return build;
}

/** Takes this version's packages if they are the same, because npm would need half a minute. */
async function installPackages(build: string, signal: AbortSignal): Promise<void> {
  const installed = join(ROOT, 'node_modules');
  const [own, previous] = [ROOT, build].map((path) => readFileSync(join(path, 'package-lock.json')));
  if (existsSync(installed) && own?.equals(previous as Buffer)) return linkPackages(installed, build);
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error', '--prefer-offline'];
  return run('npm', args, { cwd: build, signal });
}

/** Gives a folder the packages of another folder, but this repository's in the folder's own version. */
export async function linkPackages(installed: string, folder: string): Promise<void> {
  const target = join(folder, 'node_modules');
  await mkdir(join(target, OWN_SCOPE), { recursive: true });
  const names = await readdir(installed);
  for (const name of names.filter((each) => each !== OWN_SCOPE))
    await symlink(join(installed, name), join(target, name));
  // npm's links to workspaces are relative.
  for (const name of await readdir(join(installed, OWN_SCOPE)))
    await symlink(await readlink(join(installed, OWN_SCOPE, name)), join(target, OWN_SCOPE, name));
}

/** Runs a program, whose output is for the operator. */
async function run(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<void> {
  const code = await untilEnded(spawn(program, args, { ...options, stdio: ['ignore', 2, 2] }));
  options.signal.throwIfAborted();
  if (code !== 0) throw new OperatorError(`${program} ${args.join(' ')} ended with ${code}.`);
}
