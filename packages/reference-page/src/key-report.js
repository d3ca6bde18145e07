/* What the page at /docs/key says of a key, from what getKey returns. */
const DAY_MS = 86_400_000;
/** getKey has the usage of this many days, and responses announce an expiry this many days before. */
export const SHOWN_DAYS = 30;

/** The last SHOWN_DAYS (UTC), the oldest first, also those without requests. `now` is in Unix milliseconds. */
export function toDays(usage, now) {
  return Array.from({ length: SHOWN_DAYS }, (_, index) => {
    const day = new Date(now - (SHOWN_DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10);
    return { day, ...addUp(usage.filter((row) => row.day === day)) };
  });
}

/** The operations that were called, the most called first. `usage` is getKey's, the newest day first. */
export function toOperations(usage) {
  return [...new Set(usage.map(({ operation }) => operation))]
    .map((operation) => {
      const rows = usage.filter((row) => row.operation === operation);
      const [{ day: lastDay, deprecated }] = rows;
      return { operation, deprecated, lastDay, ...addUp(rows) };
    })
    .sort((a, b) => b.admitted + b.denied - (a.admitted + a.denied));
}

export function addUp(rows) {
  return {
    admitted: rows.reduce((sum, { requests }) => sum + requests, 0),
    denied: rows.reduce((sum, { denied }) => sum + denied, 0),
  };
}

/** What the holder of the key should act on. `address` is the address of a guide. */
export function listNotices({ bannedUntil, expiresAt }, now) {
  const notices = [];
  if (bannedUntil !== null)
    notices.push({
      text: `Banned until ${formatTime(bannedUntil)}. All other requests are denied until then.`,
      title: 'Bans',
      address: '../docs#description/bans',
    });
  const daysLeft = (Date.parse(expiresAt ?? '') - now) / DAY_MS;
  if (daysLeft <= SHOWN_DAYS)
    notices.push({
      text: `Expires ${formatDaysLeft(daysLeft)}, at ${formatTime(expiresAt)}. Ask for a new key before that.`,
      title: 'Getting a key',
      address: '../docs#description/getting-a-key',
    });
  return notices;
}

function formatDaysLeft(days) {
  if (days < 1) return 'within a day';
  return days < 2 ? 'in 1 day' : `in ${Math.floor(days)} days`;
}

/** The plans of the OpenAPI document, whose description has them as a table: titles, and a row of cells for each. */
export function readPlans({ info }) {
  const lines = info.description.split('\n').filter((line) => line.startsWith('| '));
  const [titles = [], , ...rows] = lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return { titles, rows };
}

/** What the usage says about the plans, the smallest first. It is stored by day, so it says nothing about minutes. */
export function comparePlans(usage, { titles, rows }) {
  const days = [...new Set(usage.map(({ day }) => day))].map((day) =>
    addUp(usage.filter((row) => row.day === day)),
  );
  const most = Math.max(0, ...days.map(({ admitted, denied }) => admitted + denied));
  if (most === 0) return `There were no requests in ${SHOWN_DAYS} days.`;
  const { denied } = addUp(usage);
  const column = titles.indexOf('requests per day');
  const enough = rows
    .map((cells) => ({ name: cells[0], limit: Number(cells[column]?.replaceAll(',', '')) }))
    .find(({ limit }) => limit >= most);
  const allowed = enough ? `, and ${enough.name} allows ${enough.limit.toLocaleString('en')}` : '';
  const times = denied === 1 ? 'once' : `${denied.toLocaleString('en')} times`;
  return `Refused ${denied === 0 ? 'never' : times} in ${SHOWN_DAYS} days. You sent at most ${most.toLocaleString('en')} a day${allowed}. Usage tells about days, not about minutes.`;
}

/** Why there is no report, by the response that came instead. */
export function describeFailure(status, headers) {
  const [seconds, id] = ['retry-after', 'x-request-id'].map((name) => headers.get(name));
  const advice = seconds === null ? 'Try again later.' : `Try again in ${seconds} s.`;
  if (status === 401)
    return 'The service does not accept this key: it is mistyped or of another environment, has expired or was revoked.';
  if (status === 429) return `There were too many requests about this key, or from your address. ${advice}`;
  if (status === 503) return `The service cannot respond now. ${advice}`;
  return `The service responded with the error ${status}.${id === null ? '' : ` Quote ${id} when you report it.`}`;
}

/** A time that formatTime has written into a text */
export const TIME = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/;

/** In UTC, from RFC 3339. */
export function formatTime(time) {
  return `${time.slice(0, 19).replace('T', ' ')} UTC`;
}
