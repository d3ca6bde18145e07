/* The page at /docs/key: asks getKey about the key that the reader has entered, and shows what it says. */
import { addUp, describeFailure, formatTime, listNotices, toDays, toOperations } from './key-report.js';
import { isKey, keepKey, readKey } from './session-key.js';

const TIMEOUT_MS = 10_000;
const form = document.querySelector('form');
const field = document.querySelector('input');
const state = document.querySelector('#state');
const report = document.querySelector('#report');
let lastRequest = 0;

field.value = readKey();
form.hidden = false;
form.addEventListener('submit', (event) => {
  event.preventDefault();
  keepKey(field.value);
  showKey(readKey());
});
if (field.value !== '') showKey(field.value);

/** A response that a later request has overtaken is not shown. */
async function showKey(key) {
  lastRequest += 1;
  const request = lastRequest;
  state.textContent = 'Asking the service …';
  const { failure, body, now } = isKey(key)
    ? await askAbout(key)
    : { failure: 'This is not a key: one begins with as_test_ or as_live_, and letters and digits follow.' };
  if (request !== lastRequest) return;
  state.className = failure === undefined ? '' : 'notice';
  state.textContent =
    failure ?? `As of ${formatTime(new Date(now).toISOString())}. Usage may be half a minute older.`;
  report.replaceChildren(...(failure === undefined ? createReport(body, now) : []));
}

/** What getKey returns, and when that was in Unix milliseconds; or in words why it returns nothing. */
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
    create('h2', {}, 'The last 30 days'),
    ...(usage.length === 0
      ? [create('p', {}, 'There were none up to half a minute ago.')]
      : createUsage(usage, now)),
  ];
}

function createNotice({ text, title, address }) {
  return create('p', { className: 'notice' }, `${text} See `, create('a', { href: address }, title), '.');
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
    create('dd', {}, text),
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
      `${remaining === 0 ? 'Used up. ' : ''}${shared ? 'Shared by all your keys. ' : ''}Resets at ${formatTime(resetsAt)}`,
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

function createOperation({ operation, deprecated }) {
  if (!deprecated) return operation;
  const address = '../docs#description/how-an-operation-is-removed';
  return create('span', {}, `${operation} (`, create('a', { href: address }, 'deprecated'), ')');
}

/** For the eyes only: the table has the same. */
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

/** It scrolls sideways where it does not fit, so it is in the order of the Tab key. */
function createTable(titles, rows) {
  const toRow = ([name, ...cells]) =>
    create('tr', {}, create('th', { scope: 'row' }, name), ...cells.map((cell) => create('td', {}, cell)));
  const head = create('tr', {}, ...titles.map((title) => create('th', { scope: 'col' }, title)));
  const table = create('table', {}, create('thead', {}, head), create('tbody', {}, ...rows.map(toRow)));
  return create('div', { className: 'table', tabIndex: 0 }, table);
}

function format(number) {
  return number.toLocaleString('en');
}

function create(name, properties, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...content);
  return element;
}
