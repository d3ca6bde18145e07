import { readFileSync } from 'node:fs';

const README = 'src/platform/README.md';
const RULES = 'biome.rooms.jsonc';
const HEADER = `// Which folder of src/ may import which. npm run docs:update writes it from the tables in ${README}.
`;
/** What a row of the two tables names: a room, or a file that lies beside them. */
const ROW = /^\| (?:\[)?`(?<name>[\w./-]+)`.*\| (?<imports>[^|]*) \|$/;

/**
 * The lint rules that keep the rooms apart. The table of rooms goes from the top down: each imports only those below it,
 * and of these only the ones in its row. A store imports what the table of a store's names lists, and no other store.
 *
 * @returns {Record<string, string>} the text by path
 * @throws {Error} when a row names something that is not below it
 */
export function deriveRooms() {
  const rooms = readRooms();
  const names = rooms.map(({ name }) => name);
  rooms.forEach(({ name, imports }, index) => {
    const upwards = imports.filter((each) => names.indexOf(each) <= index);
    if (upwards.length > 0)
      throw new Error(`${README}: ${name} cannot import ${upwards}, which is not below it`);
  });
  const files = [...names.filter(isFile), 'app.ts', 'run.ts', 'service.ts'];
  const rules = [
    ruleForStores(readStoreImports()),
    toRule(['src/platform/*.ts'], ['../**'], 'src/platform imports nothing of a store but #store/*'),
    ...rooms
      .filter(({ name }) => !isFile(name))
      .map((room) => (room.name.includes('/') ? ruleForInnerRoom(room) : ruleForRoom(room, files, names))),
  ];
  return { [RULES]: `${HEADER}{\n  "overrides": [\n${rules.join(',\n')}\n  ]\n}\n` };
}

/**
 * The rooms from the top down, each with what it may import.
 *
 * @public
 * @returns {{ name: string, imports: string[] }[]}
 */
export function readRooms() {
  return readTable('| room | what belongs there | imports |');
}

/**
 * The rooms and files that a store may import.
 *
 * @public
 * @returns {string[]}
 */
export function readStoreImports() {
  return [...new Set(readTable('| room | names | for |').map(({ name }) => name))];
}

function readTable(headings) {
  const [, table = ''] = readFileSync(README, 'utf8').split(`${headings}\n`);
  const rows = table.split('\n\n', 1)[0].split('\n').slice(1);
  return rows.map((row) => {
    const { name, imports } = ROW.exec(row).groups;
    return { name, imports: [...imports.matchAll(/[\w./-]+/g)].map(([each]) => each) };
  });
}

function ruleForStores(names) {
  const allowed = names.map((name) => `!../platform/${isFile(name) ? toModule(name) : `${name}/**`}`);
  const group = ['../*/**', ...allowed, '../{main,cli,router}.js'];
  return toRule(
    ['src/*/**', '!src/platform/**'],
    group,
    `a store imports of src/platform only ${names.join(', ')}`,
  );
}

function ruleForRoom({ name, imports }, files, names) {
  const folders = imports.filter((each) => !isFile(each));
  const allowed = folders.length > 0 ? [`${toBraces(folders)}/**`] : [];
  const forbidden = files.filter((file) => !imports.includes(file)).map(toModule);
  // A room has folders of its own: what is beside the room is two levels up for them, and a store three.
  const group = [
    ...['../*/**', '../../**', '../../../**'],
    ...[...allowed, ...imports.filter(isFile).map(toModule)].flatMap((path) => [
      `!../${path}`,
      `!../../${path}`,
    ]),
    ...[`../${toBraces(forbidden)}`],
  ];
  const inner = names.filter((each) => each.startsWith(`${name}/`));
  const includes = [`src/platform/${name}/**`, ...inner.map((each) => `!src/platform/${each}/**`)];
  return toRule(includes, group, describe(name, imports));
}

/** A room within a room, which lets only named files beside the rooms be imported. */
function ruleForInnerRoom({ name, imports }) {
  const [outer] = name.split('/');
  const others = imports.filter((each) => each !== outer && !isFile(each));
  const files = imports.filter(isFile).map((each) => `!../../${toModule(each)}`);
  const ofOuter = imports.includes(outer) ? [] : ['../*.js'];
  const group = ['../*/**', ...ofOuter, '../../**', `!../../${toBraces(others)}/**`, ...files, '../../../**'];
  return toRule([`src/platform/${name}/**`], group, describe(name, imports));
}

function describe(name, imports) {
  return `src/platform/${name} imports ${imports.length > 0 ? `only ${imports.join(', ')}` : 'no other room'}`;
}

function toRule(includes, group, message) {
  const patterns = [{ group, message: `${message}: see ${README}` }];
  const options = { level: 'error', options: { patterns } };
  const rule = { includes, linter: { rules: { style: { noRestrictedImports: options } } } };
  return `    ${JSON.stringify(rule, undefined, 1).replaceAll(/\n */g, ' ')}`;
}

function isFile(name) {
  return name.endsWith('.ts');
}

function toModule(file) {
  return file.replace(/\.ts$/, '.js');
}

function toBraces(names) {
  return names.length > 1 ? `{${names.join(',')}}` : names[0];
}
