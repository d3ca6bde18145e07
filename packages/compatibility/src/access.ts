import type { OperationComparison } from './comparison.js';
import type { Located, SecurityRequirement } from './document.js';
import { resolve } from './references.js';

/** The members that define an authentication, whatever its name. The list of all scopes, and addresses, may change. */
const MEMBERS = ['type', 'scheme', 'in', 'name', 'openIdConnectUrl'];

/** Each way to be allowed to call the operation must still be enough. */
export function compareAccess({ old, current, report }: OperationComparison): void {
  const after = listWays(current).map(({ needs }) => needs);
  for (const { needs, requirement } of listWays(old)) {
    const isEnough = after.some((needed) => needed.every((each) => needs.includes(each)));
    if (!isEnough) report('access-kept', `${JSON.stringify(requirement)} is no longer enough`);
  }
}

function listWays({ document, operation }: Located) {
  const alternatives = operation.security ?? document.security ?? [];
  const requirements: readonly SecurityRequirement[] = alternatives.length === 0 ? [{}] : alternatives;
  return requirements.map((requirement) => ({
    requirement,
    needs: Object.entries(requirement).flatMap(([name, scopes]) => {
      const scheme = describe(name, document);
      return [scheme, ...scopes.map((scope) => `${scheme} ${scope}`)];
    }),
  }));
}

function describe(name: string, document: Located['document']): string {
  const reference = document.components?.securitySchemes?.[name];
  if (reference === undefined) return name;
  const scheme = resolve(reference, document) as Readonly<Record<string, unknown>>;
  return JSON.stringify(MEMBERS.map((member) => scheme[member]));
}
