import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KEY_STATES } from '../../src/cli/key-view.js';
import { PLAN_NAMES } from '../../src/contract/plans.js';
import { run } from '../support/process.js';
import { createTemporaryFolder } from '../support/temporary-folder.js';

const BASH = '/bin/bash';
let folder: string;
let script: string;

beforeAll(async () => {
  folder = await createTemporaryFolder();
  const program = run('cli/program', ['keys', 'completion'], {});
  expect(await program.ended).toBe(0);
  script = join(folder, 'completion');
  await writeFile(script, program.output());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** What Bash offers at the end of each line. These lines have no quotes, so that they can be split at blanks. */
function complete(...lines: string[]): string[][] {
  const press =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell expands them
    'for line; do set -f; COMP_WORDS=(${line% *} "${line##* }"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _animal-store; echo "${COMPREPLY[*]}"; done';
  const output = execFileSync(BASH, ['-c', `. "$0"; . "$0"; ${press}`, script, ...lines], {
    encoding: 'utf8',
    cwd: folder,
  });
  return output
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').filter((word) => word !== ''));
}

async function listNames(...command: string[]): Promise<string[]> {
  const program = run('cli/program', [...command, '--help'], {});
  await program.ended;
  const [, commands = ''] = /^Commands:\n((?: .*\n)+)/m.exec(program.output()) ?? [];
  return [...commands.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name);
}

test.runIf(existsSync(BASH))('Bash completes every command that the help lists', async () => {
  const [program, keys] = [await listNames(), await listNames('keys')];
  expect(keys).toContain('completion');
  expect(complete('animal-store ', 'animal-store keys ', 'animal-store keys set-')).toEqual([
    expect.arrayContaining(program),
    expect.arrayContaining(keys),
    keys.filter((name) => name.startsWith('set-')),
  ]);
});

test.runIf(existsSync(BASH))('Bash completes options, and their values where there is a choice', () => {
  expect(
    complete(
      'animal-store keys create --per-',
      'animal-store keys create --name x --plan ',
      'animal-store keys create --plan f',
      'animal-store keys list --state ',
      'animal-store keys set-plan 0b54e7c0 --plan e',
      'animal-store keys create --name ',
      'animal-store keys show 0b54e7c0 --',
    ),
  ).toEqual([
    ['--per-minute', '--per-day'],
    PLAN_NAMES,
    ['free'],
    KEY_STATES,
    ['enterprise'],
    [],
    ['--json', '--help'],
  ]);
});

test.runIf(existsSync(BASH))('completing a line runs and overwrites nothing of what is typed', async () => {
  const path = join(folder, 'kept');
  await writeFile(path, 'kept');
  complete(
    `animal-store keys list > ${path} `,
    `animal-store keys create --name $(rm${' '}${path}) --`,
    `animal-store keys \`rm ${path}\` `,
  );
  expect(existsSync(path) && execFileSync('cat', [path], { encoding: 'utf8' })).toBe('kept');
});

test.runIf(existsSync(BASH))('the command that the script defines works in any folder', () => {
  const output = execFileSync(BASH, ['-c', `. "$0"; animal-store keys show --help`, script], {
    encoding: 'utf8',
    cwd: folder,
  });
  expect(output).toContain('Usage: animal-store keys show');
});
