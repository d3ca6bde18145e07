/* The page at /docs/key: asks getKey about the key that the reader has entered, and shows what it says. */
import {
  addUp,
  comparePlans,
  describeFailure,
  formatTime,
  listNotices,
  readPlans,
  SHOWN_DAYS,
  TIME,
  toDays,
  toOperations,
} from './key-report.js';
import { isKey, keepKey, readKey } from './session-key.js';

const TIMEOUT_MS = 10_000;
const form = document.querySelector('form');
const field = document.querySelector('input');
const state = document.querySelector('#state');
const report = document.querySelector('#report');
/** The addresses of what the guides say, which the build knows */
const sections = document.querySelector('main').dataset.sections.split(' ');
let lastRequest = 0;

field.value = readKey();
form.hidden = false;
form.addEventListener('submit', (event) => {
  event.preventDefault();
  keepKey(field.value);
  showKey(readKey());
});
if (field.value !== '') showKey(field.value);

/** Does not show a response that a later request has overtaken. */
async function showKey(key) {
  lastRequest += 1;
  const request = lastRequest;
  state.textContent = 'Asking the service …';
  const { failure, body, now } = isKey(key)
    ? await askAbout(key)
    : { failure: 'This is not a key: one begins with ms_test_ or ms_live_, and letters and digits follow.' };
  if (request !== lastRequest) return;
  state.className = failure === undefined ? '' : 'notice';
  state.replaceChildren(
    ...withTimes(
      failure ?? `As of ${formatTime(new Date(now).toISOString())}. Usage may be half a minute older.`,
    ),
  );
  report.replaceChildren(...(failure === undefined ? createReport(body, now) : []));
  if (failure !== undefined) return;
  const plans = await askForPlans();
  if (request === lastRequest && plans !== undefined) report.append(...createPlans(plans, body));
  if (request === lastRequest) report.append(createRevocation(key, body));
}

/** The plans of the document; undefined if it has none, or cannot be loaded. */
async function askForPlans() {
  try {
    const response = await fetch('../openapi.json', { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const plans = readPlans(await response.json());
    return plans.rows.length > 0 ? plans : undefined;
  } catch {
    return undefined;
  }
}

/** What getKey returns, and when in Unix milliseconds; or in words why it returns nothing. */
async function askAbout(key) {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch('../v1/key', { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) return { failure: describeFailure(response.status, response.headers) };
    // The clock of the reader may be wrong.
    const now = Date.parse(response.headers.get('date') ?? '') || Date.now();
    return { body: await response.json(), now };
  } catch {
    return { failure: 'The service cannot be reached. Check your connection, and try again.' };
  }
}

function createReport(key, now) {
  const { limits, usage } = key;
  return [
    ...listNotices(key, now).map(createNotice),
    createFacts(key),
    create('h2', {}, 'Limits'),
    create('div', { className: 'gauges' }, ...limits.map(createGauge)),
    create('h2', {}, `The last ${SHOWN_DAYS} days`),
    ...(usage.length === 0
      ? [create('p', {}, 'There were none up to half a minute ago.')]
      : createUsage(usage, now)),
  ];
}

function createNotice({ text, title, address }) {
  return create(
    'p',
    { className: 'notice' },
    ...withTimes(hasSection(address) ? `${text} See ` : text),
    ...(hasSection(address) ? [create('a', { href: address }, title), '.'] : []),
  );
}

function hasSection(address) {
  return sections.includes(address.slice(address.indexOf('#')));
}

function createFacts({ name, hint, plan, scopes, createdAt, expiresAt }) {
  const facts = {
    Name: name,
    Key: `${hint}…`,
    Plan: plan,
    Scopes: scopes.join(', '),
    Created: formatTime(createdAt),
    Expires: expiresAt === null ? 'never' : formatTime(expiresAt),
  };
  const cells = Object.entries(facts).flatMap(([term, text]) => [
    create('dt', {}, term),
    create('dd', {}, ...withTimes(text)),
  ]);
  return create('dl', {}, ...cells);
}

function createGauge({ window, limit, remaining, resetsAt, shared }) {
  const left = `${format(remaining)} of ${format(limit)} left`;
  const gauge = {
    ...{ className: 'gauge', role: 'meter', ariaLabel: `Left this ${window}`, ariaValueText: left },
    ...{ ariaValueMin: 0, ariaValueMax: limit, ariaValueNow: remaining },
  };
  return create(
    'div',
    {},
    create('small', {}, `This ${window}`),
    create('strong', {}, left),
    create('div', gauge, create('div', { style: `width: ${(remaining / limit) * 100}%` })),
    create(
      'small',
      {},
      ...[remaining === 0 ? 'Used up. ' : '', shared ? 'Shared by all your keys. ' : ''],
      ...withTimes(`Resets at ${formatTime(resetsAt)}`),
    ),
  );
}

function createUsage(usage, now) {
  const days = toDays(usage, now);
  const { admitted, denied } = addUp(usage);
  const legend = [
    ...[create('i', { className: 'admitted' }), `${format(admitted)} admitted `],
    ...[create('i', { className: 'denied' }), `${format(denied)} denied`],
  ];
  const dayRows = days.map((each) => [each.day, format(each.admitted), format(each.denied)]).reverse();
  const operationRows = toOperations(usage).map((each) => [
    createOperation(each),
    ...[format(each.admitted), format(each.denied), each.lastDay],
  ]);
  return [
    create('p', {}, ...legend),
    createChart(days),
    create(
      'details',
      {},
      create('summary', {}, 'Day by day'),
      createTable(['Day (UTC)', 'Admitted', 'Denied'], dayRows),
    ),
    create('h2', {}, 'By operation'),
    createTable(['Operation', 'Admitted', 'Denied', 'Last day (UTC)'], operationRows),
  ];
}

function createPlans(plans, { usage, plan }) {
  const rows = plans.rows.map(([name, ...cells]) => [name === plan ? `${name} (yours)` : name, ...cells]);
  const titles = plans.titles.map((title) => title.slice(0, 1).toUpperCase() + title.slice(1));
  return [create('h2', {}, 'Plans'), create('p', {}, comparePlans(usage, plans)), createTable(titles, rows)];
}

/** A revocation is for good, so the reader has to enter the key's first characters. */
function createRevocation(key, { hint }) {
  const field = create('input', { id: 'revoked-hint', autocomplete: 'off' });
  const problem = create('p', { role: 'alert' });
  const form = create(
    'form',
    {},
    create('label', { htmlFor: field.id }, `To revoke it for good, enter its first characters: ${hint}`),
    field,
    create('button', { type: 'submit' }, 'Revoke'),
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    problem.textContent = '';
    if (field.value.trim() !== hint) {
      problem.textContent = `Those are not its first characters, which are ${hint}. Nothing was revoked.`;
      return;
    }
    const failure = await revoke(key, hint);
    if (failure !== undefined) {
      problem.textContent = failure;
      return;
    }
    keepKey('');
    report.replaceChildren();
    state.className = '';
    state.textContent = 'The key is revoked. Programs that use it stop working within two seconds.';
    // What had the focus is gone.
    document.querySelector('#entered').focus();
  });
  const summary = create('summary', {}, 'Revoke this key');
  return create('details', {}, summary, form, problem);
}

/** Resolves with why the key could not be revoked. */
async function revoke(key, hint) {
  try {
    const headers = { authorization: `Bearer ${key}` };
    const address = `../v1/key?hint=${encodeURIComponent(hint)}`;
    const response = await fetch(address, {
      method: 'DELETE',
      headers,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return response.ok ? undefined : describeFailure(response.status, response.headers);
  } catch {
    return 'The service cannot be reached, and the key may not be revoked. Try again.';
  }
}

function createOperation({ operation, deprecated }) {
  if (!deprecated) return operation;
  const address = '../docs#description/how-an-operation-is-removed';
  if (!hasSection(address)) return `${operation} (deprecated)`;
  return create('span', {}, `${operation} (`, create('a', { href: address }, 'deprecated'), ')');
}

/** For the eyes only, because the table has the same. */
function createChart(days) {
  const most = Math.max(...days.map(({ admitted, denied }) => admitted + denied));
  const bars = days.map(({ day, admitted, denied }) => {
    const parts = Object.entries({ denied, admitted }).filter(([, count]) => count > 0);
    const title = `${day}: ${format(admitted)} admitted, ${format(denied)} denied`;
    const toPart = ([className, count]) =>
      create('i', { className, style: `height: ${(count / most) * 100}%` });
    return create('div', { title }, ...parts.map(toPart));
  });
  const ends = [days[0], days.at(-1)].map(({ day }) => create('span', {}, day));
  return create(
    'div',
    { className: 'chart', ariaHidden: true },
    create('small', {}, `${format(most)} a day`),
    create('div', { className: 'bars' }, ...bars),
    create('small', {}, ...ends),
  );
}

/** A table that does not fit scrolls sideways, so it is in the order of the Tab key. */
function createTable(titles, rows) {
  const toRow = ([name, ...cells]) =>
    create('tr', {}, create('th', { scope: 'row' }, name), ...cells.map((cell) => create('td', {}, cell)));
  const head = create('tr', {}, ...titles.map((title) => create('th', { scope: 'col' }, title)));
  const table = create('table', {}, create('thead', {}, head), create('tbody', {}, ...rows.map(toRow)));
  return create('div', { className: 'table', tabIndex: 0 }, table);
}

/** A text with times in the reader's zone, and in UTC on hover. */
function withTimes(text) {
  const found = TIME.exec(text);
  if (found === null) return [text];
  const [title] = found;
  const moment = new Date(title.replace(' UTC', 'Z').replace(' ', 'T'));
  const shown = moment.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
  const time = create('time', { dateTime: moment.toISOString(), title }, shown);
  return [text.slice(0, found.index), time, text.slice(found.index + title.length)];
}

function format(number) {
  return number.toLocaleString('en');
}

function create(name, properties, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...content);
  return element;
}
