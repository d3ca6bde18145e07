import { existsSync } from 'node:fs';
import { ROOT } from '@animal-store/definition/root';

/** A checkout has npm's scripts; the image has only the programs that they run. */
const HAS_SCRIPTS = existsSync(new URL('scripts/cli.js', ROOT));
/** A script of package.json that is a command of the command line, and what separates its arguments from npm's */
const SCRIPT = /npm run (?:-s )?(keys|migrate|seed|studio|openapi)(?: --(?= ))?/g;

/** A text whose commands are those of a checkout, with commands that work where this program is installed. */
export function toInstalledCommands(text: string, hasScripts = HAS_SCRIPTS): string {
  return hasScripts ? text : text.replaceAll(SCRIPT, 'node dist/cli.js $1');
}
