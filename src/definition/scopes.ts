/**
 * What keys can allow. Every operation declares the scope that it needs; a key has all scopes unless it was given fewer. A
 * new scope is an item here and a migration that adds it to the column's constraint and default. The command line, the
 * OpenAPI document, the guide's table and the client's types follow.
 */
export const SCOPES = ['pets:read', 'pets:write', 'orders:read', 'orders:write'] as const;
