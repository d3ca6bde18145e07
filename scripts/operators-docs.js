import { readFileSync } from 'node:fs';

const NAMES = ['operations', 'database', 'availability', 'deploy', 'configuration', 'runbooks'];
const FOLDER = 'packages/platform/docs';
const NOTE = `Here \`my-store\`, \`my_store\` and the keys \`my_test_…\` stand for the names of your store, \`items\` for what it sells, and
\`my-plan\` for a plan. Names of alerts lack that of your store. Where it says \`npm run\`, your package.json has the script, or
\`node dist/cli.js\` the command. Files below docs/deploy and docs/monitoring are those that \`store-tools operate\` writes.`;

/** What this store says of itself, and what is said of any, in this order */
const RULES = [
  // What only this store, or only a checkout, has
  [/^\| `(?:orders|categories)` \|.*\n/gm, ''],
  [/^SELECT setval\(.*'orders'.*\n/gm, ''],
  [/^GRANT .* ON orders .*\n/gm, ''],
  [/, lifts bans and enters orders also needs/g, ' and lifts bans also needs'],
  [/pets,? orders,? categories/g, 'items'],
  [/updatePet, createOrder, updateOrder; before the row of an order, and that before/g, 'a change; before'],
  [/changes and orders of this animal/g, 'changes of this item'],
  [/,orders:read/g, ''],
  [/\[identity\.ts\]\([^)]*\)/g, '`grants` of its definition'],
  [/,\n\[sizes\]\([^)]*\) and \[the evidence\]\([^)]*\)/g, ''],
  [/: copy\s\[\.env\.example\]\([^)]*\)/g, ''],
  [/^- \[A script of your own\].*\n|^## A script of your own\n[\s\S]*?(?=^## )/gm, ''],
  [/ {2}scripts\/$/gm, ''],
  [/ If your tools refuse broken links[\s\S]*?nothing uses\./g, ''],
  [/\.\/dist\/node_modules\/(@animal-store\/platform\/tracing)\.mjs/g, '$1'],
  [/npm run migrate:check {2}(#.*); in a checkout/g, 'npx store-tools check --database  $1'],
  [/ For a build from before 1\.0\.0 see \[[\s\S]*?\)\./g, ''],
  // Names. Those of the packages, and of attributes, are the same for any store.
  [/(?<=--plan )[a-z][\w|]*/g, 'my-plan'],
  [/(?<!@)animal-store/g, 'my-store'],
  [/animal_store(?!\.(?:protocol|plan|error_code))/g, 'my_store'],
  [/AnimalStore(?=[A-Z])|(?<=#)animalstore(?=[a-z])/g, ''],
  [/\bas_(?=live_|test_)/g, 'my_'],
  [/(?<!@)\b(?:animal|pet)(?=s?(?:\b|_))/g, 'item'],
  [/(?<=[a-z])Pet\b/g, 'Item'],
];
const LINK = /\[([^\]]+)\]\((?!https?:|#)([^)]+)\)/g;

/**
 * The documents for operators as the platform brings them: those of this store without its names, and without links to what the
 * package has not.
 *
 * @returns {Record<string, string>} the texts, by their paths
 */
export function deriveOperatorsDocs() {
  const texts = NAMES.map((name) => readFileSync(`docs/${name}.md`, 'utf8'));
  const unused = RULES.filter(([pattern]) => texts.every((text) => text.search(pattern) < 0));
  if (unused.length > 0) throw new Error(`No document says what ${unused.join(' and ')} replaces.`);
  return Object.fromEntries(texts.map((text, index) => [`${FOLDER}/${NAMES[index]}.md`, derive(text)]));
}

function derive(text) {
  const generic = RULES.reduce((rest, [pattern, replacement]) => rest.replace(pattern, replacement), text);
  return generic.replace(LINK, toPackageLink).replace(/^# .+\n/, `$&\n${NOTE}\n`);
}

function toPackageLink(link, text, target) {
  if (NAMES.some((name) => target.split('#', 1)[0] === `${name}.md`)) return link;
  const inPackage = target.startsWith('../packages/platform/');
  return inPackage ? `[${text}](${target.replace('packages/platform/', '')})` : text;
}
