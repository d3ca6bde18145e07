export interface PagesOptions {
  /** The folder of the store, from where its service serves what is written into dist/reference-page */
  readonly root: string;
  readonly identity: {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly keyPrefix: string;
    readonly mainPath: string;
  };
  /** The OpenAPI document of the store */
  readonly document: object;
}

/**
 * Writes the pages at /docs, /docs/key and /changelog, /llms.txt, and all that they load. Guides, the words for their search
 * (synonyms.json) and the changelog of the interface (changelog.md) are those of docs/guides of the store, and the sign is its
 * docs/icon.svg. What is not there is left out.
 *
 * @returns the path of the folder, from that of the store
 * @throws {Error} for a link of a guide that leads nowhere, or an entry of the changelog without a date
 */
export function writePages(options: PagesOptions): string;
