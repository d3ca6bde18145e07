/*
 * Keeps the console clean, so this script has to run before Scalar's bundle. It is a file of its own because the page's
 * policy forbids inline scripts.
 *
 * The bundle tries once whether it can compile code from a string. The page's Content-Security-Policy forbids that, and
 * browsers would log the violation for every reader, unless the same error is thrown first.
 */
const forbid = () => {
  throw new EvalError('The Content-Security-Policy of this page forbids compiling code from strings.');
};
window.Function = new Proxy(Function, { apply: forbid, construct: forbid });

/* The bundle also logs its version and timings. Nothing else on the page uses console.info. */
console.info = () => {};
