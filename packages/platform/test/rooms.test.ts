import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { create, definition, list, otherList, read } from '#operations-under-test';

const PLATFORM = 'packages/platform/src';
const README = readFileSync('packages/platform/README.md', 'utf8');
const rooms = readTable('| room | what belongs there | imports |');
const libraries = readTable('| library | what it promises |').map(({ name }) => name);

/** The rows of a table in the README: a room, or a file that lies beside them, and what the last cell names. */
function readTable(headings: string) {
  const [, table = ''] = README.split(`${headings}\n`);
  const rows = table.split('\n\n', 1)[0]?.split('\n').slice(1) ?? [];
  return rows.map((row) => {
    const { name = '', last = '' } =
      /^\| \[?`(?<name>[\w./-]+)`.*\| (?<last>[^|]*) \|$/.exec(row)?.groups ?? {};
    return { name, imports: [...last.matchAll(/[\w./-]+/g)].map(([each]) => each) };
  });
}

/** The paths of the sources below a folder */
function listSources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/(?:^|\/)(?:dist|generated)\//.test(path))
    .map((path) => join(folder, path));
}

/** What follows `from` and `import` in a file */
const listTargets = (path: string) =>
  [...readFileSync(path, 'utf8').matchAll(/(?:from |import |import\()'([^']+)'/g)].map(
    ([, target = '']) => target,
  );

/** What a file imports of this repository: a room, a file beside the rooms, or a library. */
function listImports(path: string): string[] {
  const imported = [
    ...readFileSync(path, 'utf8').matchAll(/(?:from |import |import\()'(?:(\.[^']+)|@[\w-]+\/([\w-]+))'/g),
  ];
  return imported.flatMap(([, target, library = '']) => {
    if (target === undefined) return libraries.includes(library) ? [library] : [];
    const file = join(dirname(path), target);
    return [file.startsWith(`${PLATFORM}/`) ? toRoom(file) : file];
  });
}

function toRoom(path: string): string {
  const [outer = '', inner] = path.split('/').slice(3);
  const nested = `${outer}/${inner}`;
  return rooms.some(({ name }) => name === nested) ? nested : outer.replace(/\.js$/, '.ts');
}

test('every room is in the table of rooms, imports what its row names and no more, and only what is below it', () => {
  const used = new Map<string, Set<string>>();
  for (const path of listSources(PLATFORM)) {
    const room = toRoom(path);
    used.set(
      room,
      new Set([...(used.get(room) ?? []), ...listImports(path).filter((each) => each !== room)]),
    );
  }
  const aboveAll = ['app.ts', 'run.ts', 'server.ts', 'service.ts', 'testing'];
  for (const top of aboveAll) used.delete(top);
  const upwards = [...used].filter(([, imports]) => [...imports].some((each) => aboveAll.includes(each)));
  expect(upwards).toEqual([]);
  const names = [...rooms.map(({ name }) => name), ...libraries];
  for (const [index, { name, imports }] of rooms.entries())
    expect([name, imports.filter((each) => names.indexOf(each) <= index)]).toEqual([name, []]);
  const tabled = rooms.map(({ name, imports }) => [name, [...imports].sort()]);
  expect(Object.fromEntries(tabled)).toEqual(
    Object.fromEntries([...used].map(([room, imports]) => [room, [...imports].sort()])),
  );
});

/** By module, the names in the table of what a store may use */
function readFaces(): Record<string, string[]> {
  const [, table = ''] = README.split('| import | names | for |\n');
  const faces: Record<string, string[]> = {};
  for (const row of table.split('\n\n', 1)[0]?.split('\n').slice(1) ?? []) {
    const cells = row.split(' | ').slice(0, 2).join();
    const [module = '', ...names] = [...cells.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    faces[module] = [...(faces[module] ?? []), ...names];
  }
  return faces;
}

test('a room exports to stores what the table of what a store may use names, and nothing else', () => {
  const exported = Object.keys(readFaces()).map((module) => {
    const room = module.slice('@animal-store/platform/'.length);
    if (room === '') return [module, ['run']];
    const lists = readFileSync(`${PLATFORM}/${room}/index.ts`, 'utf8').matchAll(
      /^export (?:type )?\{([^}]*)\}/gm,
    );
    const names = [...lists].flatMap(([, list = '']) => list.match(/\b(?!type\b)\w+/g) ?? []);
    return [module, names.sort()];
  });
  const named = Object.entries(readFaces()).map(([module, names]) => [module, names.sort()]);
  expect(named).toEqual(exported);
  const faces = listSources(PLATFORM).filter((path) => path.endsWith('/index.ts'));
  expect(faces.length).toBe(named.length - 1);
});

test('a store imports its own files, its definition, and the packages that it installs', () => {
  const [module = ''] = Object.keys(readFaces());
  expect(module).toBe('@animal-store/platform');
  for (const path of listSources('src')) {
    const files = listTargets(path)
      .filter((target) => target.startsWith('.'))
      .map((target) => join(dirname(path), target));
    expect([path, files.filter((file) => !/^(?:src\/|scripts\/node-version\.js)/.test(file))]).toEqual([
      path,
      [],
    ]);
  }
});

/**
 * What the store's folders still import of the insides of packages, by the beginning of its path, and why. Whatever is not here,
 * they use through what is installed.
 */
const INSIDES: Readonly<Record<string, string>> = {
  'packages/platform/test/support/':
    'servers, proxies, browsers and faults that only tests of this repository start',
  'packages/limits/test/support/': 'clusters of Redis that slow tests start',
  'packages/platform/src/contract/': 'documents are compared with these constants',
  'packages/platform/src/errors/': 'documents and texts are compared with the table of errors',
  'packages/platform/src/keys/': 'the bench measures the checks of keys by themselves',
  'packages/platform/src/connections/': 'the upgrade check opens databases as the previous version does',
  'packages/platform/src/migrations/': 'the upgrade check migrates from the previous version on',
  'packages/platform/src/database/': 'tests and the upgrade check add sample data as a first start does',
  'packages/platform/src/operations/': 'documents are compared with the list of operations',
  'packages/platform/src/process/': 'documents are compared with the variables and their errors',
  'packages/platform/src/timing/': 'documents are compared with these timeouts',
  'packages/platform/src/usage/': 'documents are compared with the interval of the flush',
  'packages/platform/src/cli/': 'the texts of all commands are read',
  'packages/client-core/src/protocol': 'its constants are compared with those of the service',
};

test('the animals use what is installed: nothing of the insides of a package, but for the list of exceptions', () => {
  const folders = ['src', 'test', 'scripts', 'bench', 'examples'];
  const used = folders.flatMap(listSources).flatMap((path) =>
    listTargets(path)
      .filter((target) => target.startsWith('.'))
      .map((target) => join(dirname(path), target))
      .filter((target) => /^packages\/[\w-]+\/(?:src|test)\//.test(target)),
  );
  const begins = (start: string) => (target: string) => target.startsWith(start);
  expect(used.filter((target) => !Object.keys(INSIDES).some((start) => begins(start)(target)))).toEqual([]);
  expect(Object.keys(INSIDES).filter((start) => !used.some(begins(start)))).toEqual([]);
});

test('a library imports other libraries and packages of others, and nothing of the service', () => {
  expect(libraries.length).toBeGreaterThan(1);
  for (const library of libraries) {
    const folder = join('packages', library);
    const needed = Object.keys(
      JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).dependencies ?? {},
    );
    for (const path of listSources(join(folder, 'src'))) {
      const others = listTargets(path)
        .filter((target) => !target.startsWith('node:') && !needed.includes(target))
        .map((target) => (target.startsWith('.') ? join(dirname(path), target) : target));
      expect(
        others.filter((target) => !target.startsWith(`${folder}/src/`)),
        path,
      ).toEqual([]);
    }
  }
});

test('every room has a README that says what belongs there, what does not, and what to read first', () => {
  for (const { name } of rooms.filter(({ name }) => !name.endsWith('.ts'))) {
    const text = readFileSync(`${PLATFORM}/${name}/README.md`, 'utf8');
    const [, first] =
      /^\*\*Belongs here:\*\*.*^\*\*Does not:\*\*.*^Read `([\w-]+\.ts)` first/ms.exec(text) ?? [];
    expect(readdirSync(`${PLATFORM}/${name}`), `${name}/README.md`).toContain(first);
  }
});

test('nothing in the platform says what the store is called or serves', () => {
  const { name, title, description, keyPrefix, metricsPrefix, mainTable } = definition.identity;
  const names = [name, title, description, `${keyPrefix}live`, `${keyPrefix}test`, metricsPrefix, mainTable];
  const words = [...names, ...definition.scopes];
  for (const path of listSources(PLATFORM)) {
    // Comments may give examples, and the packages of this repository have the store's scope.
    const code = readFileSync(path, 'utf8').replaceAll(/\/\*.*?\*\/|^\s*\/\/[^\n]*|@[\w-]+\/[\w/-]+/gms, '');
    expect(
      words.filter((word) => code.includes(word)),
      path,
    ).toEqual([]);
  }
});

/**
 * What may be kept, by file: the pause of a busy process, the turns of commands, and by the folder of a store the scripts of its
 * package.json and the servers of its tests
 */
const KEPT = [
  'admission/charge.ts',
  'operator-errors/installed-commands.ts',
  'testing/command.ts',
  'testing/servers.ts',
];

test('no module of the platform keeps a definition: two stores run in one process', () => {
  const mutable =
    /^(?:export )?(?:let |var |const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet)(?:<.*>)?\(\))/m;
  const keeping = listSources(PLATFORM).filter((path) => mutable.test(readFileSync(path, 'utf8')));
  expect(keeping.map((path) => path.slice(PLATFORM.length + 1))).toEqual(KEPT);
});

test('the tests of the platform import nothing of the repository around it, but their store and what the tests of its libraries share', () => {
  const outside = listSources('packages/platform/test').flatMap((path) =>
    listTargets(path)
      .filter((target) => target.startsWith('.'))
      .map((target) => join(dirname(path), target))
      .filter(
        (file) =>
          !/^(?:examples\/boatyard\/src|packages\/(?:platform|limits\/test\/support|embedded-postgres\/src))\//.test(
            file,
          ),
      )
      .map((file) => `${path}: ${file}`),
  );
  expect(outside).toEqual([]);
});

test('no test of the platform, nor what they share, spells out the names, paths and scopes of its store', () => {
  const words = [list, create, read, otherList].flatMap(({ name, path, scope }) => [name, path, scope]);
  for (const path of listSources('packages/platform/test')) {
    const text = readFileSync(path, 'utf8');
    // What names them for the tests, and tests with a resource of their own, may.
    if (path.endsWith('/operations-under-test.ts') || text.includes('createProcedure')) continue;
    expect(
      words.filter((word) => text.includes(word)),
      path,
    ).toEqual([]);
  }
});
