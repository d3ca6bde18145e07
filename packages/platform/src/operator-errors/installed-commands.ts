import { existsSync, readFileSync } from 'node:fs';

/** A command of the command line as a script of npm, and what separates its arguments from npm's */
const COMMAND = /npm run (?:-s )?(keys|migrate|openapi|platform|seed|studio)(?: --(?= ))?/g;

type Scripts = Readonly<Record<string, string>>;

/** By the folder of a store, because a help text asks dozens of times */
const known = new Map<string, Scripts>();

function readScripts(root: URL): Scripts {
  let scripts = known.get(root.href);
  if (scripts === undefined) {
    const manifest: { scripts?: Scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
    scripts = manifest.scripts ?? {};
    known.set(root.href, scripts);
  }
  return scripts;
}

/** Whether npm can run a script here: an image has package.json, but not the programs of every script. */
export function hasScript(root: URL, name: string): boolean {
  const programs = readScripts(root)[name]?.match(/[\w./-]+\.js\b/g);
  return programs?.every((path) => existsSync(new URL(path, root))) ?? false;
}

/** A text whose commands are npm's scripts, with commands that work where this program is installed. */
export function toInstalledCommands(
  root: URL,
  text: string,
  isScript = (name: string) => hasScript(root, name),
): string {
  return text.replaceAll(COMMAND, (script, command: string) =>
    isScript(command) ? script : `node dist/cli.js ${command}`,
  );
}
