const RECOMMENDED = 24;
/** When the supported versions before the recommended one get their last fixes: https://github.com/nodejs/release */
const ENDS: Readonly<Record<string, string>> = { 20: '2026-04-30', 22: '2027-04-30' };

/** A line for the operator when a version of Node.js no longer gets security fixes. The service still runs. */
export function describeEndOfLife(version: string, now: number): string | undefined {
  const end = ENDS[Number.parseInt(version, 10)];
  if (end === undefined || now < Date.parse(end)) return undefined;
  const month = new Date(end).toLocaleDateString('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return `Node.js ${version} has been without security fixes since ${month}: use ${RECOMMENDED}`;
}
