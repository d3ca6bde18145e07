import { existsSync, readFileSync } from 'node:fs';
import { ROOT } from '@animal-store/definition/root';

const { scripts = {} }: { scripts?: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('package.json', ROOT), 'utf8'),
);
/** A command of the command line as a script of npm, and what separates its arguments from npm's */
const COMMAND = /npm run (?:-s )?(keys|migrate|openapi|platform|seed|studio)(?: --(?= ))?/g;

/** Whether npm can run a script here: an image has package.json, but not the programs of every script. */
export function hasScript(name: string): boolean {
  const programs = scripts[name]?.match(/[\w./-]+\.js\b/g);
  return programs?.every((path) => existsSync(new URL(path, ROOT))) ?? false;
}

/** A text whose commands are npm's scripts, with commands that work where this program is installed. */
export function toInstalledCommands(text: string, isScript = hasScript): string {
  return text.replaceAll(COMMAND, (script, command: string) =>
    isScript(command) ? script : `node dist/cli.js ${command}`,
  );
}
