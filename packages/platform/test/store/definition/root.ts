/** The tests import the sources; programs that they start run what scripts/test-store.js has built. */
const TO_ROOT = import.meta.url.includes('/dist/node_modules/') ? '../../../../../' : '../';

export const ROOT = new URL(TO_ROOT, import.meta.url);
