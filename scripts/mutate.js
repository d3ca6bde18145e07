import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { parseArgs } from 'node:util';

/*
 * Changes lines of src/ at random, one at a time, and runs the tests of each: `npm run mutate -- --count=200`. What no test
 * notices is printed at the end: a promise without a test, or a line that keeps none. A run with the printed seed on the
 * same commit makes the same changes. It works on a copy of the last commit.
 *
 *   --count=N     how many lines, 20 by default
 *   --seed=N      of the choice, random by default
 *   --under=PATH  only files whose path starts with it, src/ by default
 */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 32)) },
    under: { type: 'string', default: 'src/' },
  },
});
/** A mutant whose tests do not end by then has ended something that they wait for: it is noticed. */
const TEST_TIMEOUT_MS = 300_000;

/** Each replaces the first match in a line. What looks like a type, an import or a comment is left alone. */
const MUTATIONS = [
  [/ === /, ' !== '],
  [/ !== /, ' === '],
  [/ < /, ' <= '],
  [/ <= /, ' < '],
  [/ > /, ' >= '],
  [/ >= /, ' > '],
  [/ && /, ' || '],
  [/ \|\| /, ' && '],
  [/ \+ /, ' - '],
  [/ - /, ' + '],
  [/ \+= /, ' -= '],
  [/\btrue\b/, 'false'],
  [/\bfalse\b/, 'true'],
  [/Math\.min\(/, 'Math.max('],
  [/Math\.max\(/, 'Math.min('],
  [/\b(\d[\d_]*)\b(?!['"`])/, (number) => String(Number(number.replaceAll('_', '')) + 1)],
  [/^(\s+)if \((.+)\) (return|throw|continue)/, '$1if (!($2)) $3'],
  [/^(\s+)[\w.#]+\([^()]*\);$/, '$1'],
];
const SKIPPED = /^\s*(?:\/\/|\*|\/\*|import |export type|type |interface |readonly |declare )|^\s*$/;

const root = process.cwd();
const random = createRandom(Number(values.seed));
const copy = mkdtempSync(join(tmpdir(), 'animal-store-mutants-'));
process.on('exit', () => {
  run('git', ['worktree', 'remove', '--force', copy], root);
  rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

process.stdout.write(`Seed ${values.seed}\n`);
prepareCopy();
const survivors = [];
for (const mutant of choose(listMutants(), Number(values.count))) {
  const outcome = tryMutant(mutant);
  process.stdout.write(`${outcome.padEnd(8)} ${describe(mutant)}\n`);
  if (outcome === 'lived') survivors.push(mutant);
}
process.stdout.write(`\n${survivors.length} lived, with seed ${values.seed}:\n`);
for (const mutant of survivors) process.stdout.write(`  ${describe(mutant)}\n`);

/** A work tree of the last commit, with the packages and the build of this one. */
function prepareCopy() {
  const { status, stderr } = run('git', ['worktree', 'add', '--detach', copy, 'HEAD'], root);
  if (status !== 0) throw new Error(stderr);
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const name of readdirSync(join(root, 'packages'))) {
    const modules = join(root, 'packages', name, 'node_modules');
    if (existsSync(modules)) symlinkSync(modules, join(copy, 'packages', name, 'node_modules'));
  }
  if (run('npm', ['run', 'build'], copy).status !== 0) throw new Error('The last commit does not build.');
}

/** Every change that can be made to a line, as its file, its number and its new text. */
function listMutants() {
  const files = readdirSync(join(copy, 'src'), { recursive: true })
    .map((name) => `src/${name.split(sep).join('/')}`)
    .filter((path) => path.endsWith('.ts') && path.startsWith(values.under) && !path.includes('/generated/'))
    .sort();
  return files.flatMap((path) => {
    const lines = readFileSync(join(copy, path), 'utf8').split('\n');
    return lines.flatMap((line, index) =>
      SKIPPED.test(line)
        ? []
        : MUTATIONS.filter(([pattern]) => pattern.test(line)).map(([pattern, replacement]) => ({
            path,
            index,
            line,
            mutated: line.replace(pattern, replacement),
          })),
    );
  });
}

/** Lines without repetition: of a line, one change. */
function choose(mutants, count) {
  const byLine = new Map();
  for (const mutant of mutants) {
    const line = `${mutant.path}:${mutant.index}`;
    byLine.set(line, [...(byLine.get(line) ?? []), mutant]);
  }
  const lines = [...byLine.values()];
  const chosen = [];
  while (chosen.length < count && lines.length > 0) {
    const [candidates] = lines.splice(Math.floor(random() * lines.length), 1);
    chosen.push(candidates[Math.floor(random() * candidates.length)]);
  }
  return chosen;
}

/** The tests that mirror the file's folder first, then all that import it. */
function tryMutant({ path, index, mutated }) {
  const file = join(copy, path);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.split('\n').with(index, mutated).join('\n'));
  try {
    const folder = dirname(path).replace(/^src/, 'test');
    const quick = ['--exclude', '**/*.slow.test.ts', '--bail', '1'];
    const isMirrored = folder !== 'test' && existsSync(join(copy, folder));
    if (isMirrored && !passes(['run', `${folder}/`, ...quick])) return 'noticed';
    return passes(['related', path, '--run', ...quick]) ? 'lived' : 'noticed';
  } finally {
    writeFileSync(file, text);
  }
}

function passes(args) {
  return run('npx', ['vitest', ...args, '--reporter=dot'], copy, TEST_TIMEOUT_MS).status === 0;
}

function run(program, args, cwd, timeout) {
  return spawnSync(program, args, { cwd, timeout, encoding: 'utf8', maxBuffer: 2 ** 27 });
}

function describe({ path, index, line, mutated }) {
  return `${path}:${index + 1}: ${line.trim()}  →  ${mutated.trim() || 'removed'}`;
}

/** mulberry32, so that a seed gives the same numbers on every machine. */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
