/*
 * The document as the page shows it. Code generators and linters read the served document, which says the same in the
 * terms of JSON Schema.
 */
import { KEY_NOTE } from './introduction.js';

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const BOUND_NAMES = new Map([
  [MAX_SAFE, '2^53 − 1'],
  [-MAX_SAFE, '−(2^53 − 1)'],
  [2 ** 31 - 1, '2^31 − 1'],
]);

/** @param {object} openapi is changed */
export function prepareForReaders(openapi) {
  const operations = Object.values(openapi.paths).flatMap((item) => Object.values(item));
  operations.forEach(addBadge);
  const getKey = operations.find(({ operationId }) => operationId === 'getKey');
  if (getKey !== undefined) getKey.description += `\n\n${KEY_NOTE}`;
  describeValues(openapi, openapi);
  operations.flatMap(({ parameters = [] }) => parameters).forEach(omitFromRequests);
}

/**
 * Puts the operations into the menu before the guides, where Scalar has them last. Everything else keeps its order.
 *
 * @param {object} openapi is changed
 * @param {string} slug the first part of every address
 */
export function orderMenu(openapi, slug) {
  const tags = openapi.tags.map(({ name }) => `tag/${name.toLowerCase()}`);
  openapi['x-scalar-order'] = ['description/introduction', ...tags].map((address) => `${slug}/${address}`);
}

function addBadge(operation) {
  operation['x-badges'] = [{ name: operation['x-stability'], position: 'before' }];
}

/**
 * Puts the bounds of integers into words, where Scalar would start with `min: -9007199254740991`, and leaves out
 * patterns, which the descriptions explain.
 *
 * @param {object} node is changed
 * @param {object} holder the object whose description Scalar shows: the node, or its parameter or header
 */
function describeValues(node, holder) {
  for (const [name, child] of Object.entries(node)) {
    if (typeof child === 'object' && child !== null) describeValues(child, name === 'schema' ? node : child);
  }
  if (typeof node.pattern === 'string') delete node.pattern;
  if (node.type !== 'integer' || node.minimum === undefined || node.maximum === undefined) return;
  const range = describeRange(node);
  const { description } = holder;
  holder.description = description === undefined ? range : `${description.replace(/\.$/, '')}. ${range}`;
  delete node.minimum;
  delete node.maximum;
}

/** In words: "An integer from 1 to 100." */
export function describeRange({ minimum, maximum }) {
  const [from, to] = [minimum, maximum].map((bound) => BOUND_NAMES.get(bound) ?? bound.toLocaleString('en'));
  return `An integer from ${from} to ${to}.`;
}

/**
 * Keeps an optional parameter out of test requests until the reader fills it in. For each parameter with a schema, Scalar
 * makes up a value: an empty, invalid Idempotency-Key, and a cursor that skips the first page. A parameter that is
 * described by its `content` means the same, and gets no value.
 */
function omitFromRequests(parameter) {
  if (parameter.required) return;
  parameter.content = { 'text/plain': { schema: parameter.schema } };
  delete parameter.schema;
}
