/** What keys can allow. A migration has the names, too. */
export const SCOPES = ['boats:read', 'boats:write'] as const;
export type Scope = (typeof SCOPES)[number];
