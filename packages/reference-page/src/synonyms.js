/*
 * What people look for by words that no section has: for each word or phrase, the words to look for instead. Synonyms are
 * used only if a search finds nothing, so a text that gains the word takes over.
 */
export const SYNONYMS = new Map([
  ['search by name', 'filters by name'],
  ['updated since', 'keep a copy'],
  ['pip install', 'first call python'],
  ['buy', 'order an animal'],
  ['c#', 'in your language'],
  ['cors', 'origins of web pages'],
  ['download', 'code generators'],
  ['graphql', 'code generators'],
  ['login', 'getting a key'],
  ['offset', 'pagination'],
  ['photo', 'add an animal'],
  ['php', 'in your language'],
  ['postman', 'code generators'],
  ['price', 'rate limits'],
  ['refund', 'cancel an order'],
  ['ruby', 'in your language'],
  ['sandbox', 'environments'],
]);
