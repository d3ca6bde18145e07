import { asService } from './service-role.js';

type Variables = Record<string, string>;

/** The variables a started process inherits: nothing that could point it at a database or at Redis. */
export const INHERITED = Object.fromEntries(
  ['PATH', 'HOME', 'LANG', 'TMPDIR', 'NODE_COMPILE_CACHE'].flatMap((name) =>
    process.env[name] ? [[name, process.env[name]]] : [],
  ),
);

/** The commands for the owner of the tables. */
const OWNER_COMMANDS = ['migrate', 'seed', 'studio'];

/**
 * With the DATABASE_URL of the role with the documented grants in place of the owner's, unless the command is for the owner.
 */
export function asServiceUnlessOwner(variables: Variables, [command = '']: readonly string[]): Variables {
  const { DATABASE_URL } = variables;
  const isOwner = DATABASE_URL === undefined || OWNER_COMMANDS.includes(command);
  return isOwner ? variables : { ...variables, DATABASE_URL: asService(DATABASE_URL) };
}
