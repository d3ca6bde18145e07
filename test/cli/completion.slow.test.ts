import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { run } from '../support/process.js';
import { hasProgram } from '../support/programs.js';
import { createTemporaryFolder } from '../support/temporary-folder.js';

const hasTerminal = hasProgram('script', '--version');

test.each([
  ['bash', 'bash --norc --noprofile -i'],
  ['zsh', 'zsh -f -i'],
])(
  'the Tab key completes commands, options and choices in %s',
  { timeout: 60_000 },
  async (shell, command) => {
    if (!hasTerminal || !hasProgram(shell, '--version')) return;
    const folder = await createTemporaryFolder();
    const program = run('cli/program', ['keys', 'completion'], {});
    expect(await program.ended).toBe(0);
    await writeFile(join(folder, 'completion'), program.output());
    const environment = { PATH: process.env.PATH, HOME: folder, TERM: 'dumb', PS1: '> ' };
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { cwd: folder, env: environment });
    onTestFinished(async () => {
      terminal.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    });
    let output = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const type = async (text: string, expected: string | RegExp) => {
      output = '';
      terminal.stdin.write(text);
      const shown = () => stripVTControlCharacters(output).replaceAll(/[\r\b]/g, '');
      await expect.poll(shown, { timeout: 20_000 }).toMatch(expected);
    };
    await type('. ./completion && echo read""y\n', 'ready');
    await type('animal-store ke\t', /animal-store keys $/);
    await type('cr\t', /cr?eate $/);
    await type('--pl\t', /plan $/);
    await type('f\t', /free $/);
    await type('--per-\t\t', /--per-day +--per-minute/);
  },
);
