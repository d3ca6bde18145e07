import { hostname, userInfo } from 'node:os';

/** PostgreSQL truncates a longer name (NAMEDATALEN - 1). */
const MAX_NAME_BYTES = 63;

/**
 * The application_name of a command's connections, which the history of keys and pg_stat_activity show: the command, and
 * the account and machine that run it, such as `animal-store keys revoke by alice@desk`. With sudo, this is the account
 * that called sudo. PostgreSQL takes only printable ASCII.
 *
 * @param service its name in lower case with hyphens
 */
export function describeCaller(service: string, command: string): string {
  const name = `${service} ${command} by ${process.env.SUDO_USER || readAccount()}@${hostname()}`;
  return name.replaceAll(/[^ -~]/gu, '?').slice(0, MAX_NAME_BYTES);
}

/** An arbitrary user id in a container has no name. */
function readAccount(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`;
  }
}
