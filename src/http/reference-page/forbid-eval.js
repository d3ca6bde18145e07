/*
 * Scalar's bundle tries once whether it can compile code from a string. The page's Content-Security-Policy forbids
 * that, and browsers would log the violation for every reader. Throwing the same error first keeps the console clean;
 * so this script has to run before the bundle. It is a file of its own because the policy also forbids inline scripts.
 */
const forbid = () => {
  throw new EvalError('The Content-Security-Policy of this page forbids compiling code from strings.');
};
window.Function = new Proxy(Function, { apply: forbid, construct: forbid });
