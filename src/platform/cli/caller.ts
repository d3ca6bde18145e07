import { hostname, userInfo } from 'node:os';
import { IDENTITY } from '#store/identity.js';

/** PostgreSQL cuts a longer name off (NAMEDATALEN - 1). */
const MAX_NAME_BYTES = 63;

/**
 * What a command calls itself in the database, for the history of keys and whoever looks at sessions: which command, and
 * which account of which machine runs it, such as `animal-store keys revoke by alice@desk`. With sudo, that is who called
 * it. PostgreSQL takes printable ASCII.
 */
export function describeCaller(command: string): string {
  const name = `${IDENTITY.name} ${command} by ${process.env.SUDO_USER || readAccount()}@${hostname()}`;
  return name.replaceAll(/[^ -~]/gu, '?').slice(0, MAX_NAME_BYTES);
}

/** An arbitrary user of a container has no name. */
function readAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
