/**
 * Arguments of Node.js for a process in which a package is missing.
 *
 * @param whileThere a file: the package is missing as long as there is one. Default: for ever
 */
export function withoutModule(specifier: string, whileThere?: string): string[] {
  const hooks = `
    import { existsSync } from 'node:fs';
    const file = ${JSON.stringify(whileThere)};
    export function resolve(specifier, context, next) {
      const isMissing = specifier === ${JSON.stringify(specifier)} && (file === undefined || existsSync(file));
      if (!isMissing) return next(specifier, context);
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    }`;
  const preloaded = `
    import { register } from 'node:module';
    register(${JSON.stringify(toModule(hooks))});`;
  return ['--import', toModule(preloaded)];
}

function toModule(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
