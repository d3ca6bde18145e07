import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hasProgram } from '@animal-store/limits/testing';

const FILE = fileURLToPath(new URL('../../../../docs/deploy/roles.sql', import.meta.url));

export const hasPsql = () => hasProgram('psql', '--version');

/** docs/deploy/roles.sql under other names: the superusers of tests have that of a role which it creates. */
export const readRoles = (name: string) => readFileSync(FILE, 'utf8').replaceAll('animal_store', name);

/**
 * Runs roles.sql with psql, as a superuser. Returns the URLs of the owner and of the service's role, both in the new database.
 *
 * @param name of the database and of the service's role
 * @param script that of the store which has the name
 */
export function createRoles(
  superuserUrl: string,
  name: string,
  script = readRoles(name),
): { owner: string; service: string } {
  const password = 'secret';
  execFileSync('psql', ['--no-psqlrc', '--quiet', '--file', '-', superuserUrl], {
    input: script,
    env: { ...process.env, OWNER_PASSWORD: password, SERVICE_PASSWORD: password },
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const urlOf = (username: string) =>
    Object.assign(new URL(superuserUrl), { username, password, pathname: `/${name}` }).href;
  return { owner: urlOf(`${name}_owner`), service: urlOf(name) };
}
