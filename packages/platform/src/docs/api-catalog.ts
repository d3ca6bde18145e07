import type { FastifyInstance, FastifyReply } from 'fastify';
import { MCP_PREFIX, REST_PREFIX } from '../contract/protocol.js';
import type { Definition } from '../definition/definition.js';
import { hasOwnPage } from './routes.js';

const CATALOG_PATH = '/.well-known/api-catalog';
const MEDIA_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';

export interface CatalogOptions {
  readonly definition: Pick<Definition, 'identity' | 'root'>;
  /** Without a trailing slash */
  readonly publicUrl: () => string;
  /** The path of /health; undefined if clients cannot reach it */
  readonly statusPath: string | undefined;
}

/**
 * The catalogue of the interfaces (RFC 9727): the descriptions of each for programs and for people, and its status, as a
 * set of links (RFC 9264).
 */
export function registerApiCatalog(
  app: FastifyInstance,
  { definition, publicUrl, statusPath }: CatalogOptions,
): void {
  app.get(CATALOG_PATH, (_request, reply: FastifyReply) => {
    const baseUrl = publicUrl();
    const link = (path: string, type: string) => ({ href: baseUrl + path, type });
    const status = statusPath === undefined ? {} : { status: [link(statusPath, 'application/json')] };
    const texts = hasOwnPage(definition.root) ? [link('/llms.txt', 'text/plain')] : [];
    const pages = [link('/docs', 'text/html'), ...texts];
    // Addresses at which a program finds something: the prefix alone leads nowhere.
    const [rest, tools] = [baseUrl + REST_PREFIX + definition.identity.mainPath, baseUrl + MCP_PREFIX];
    const catalog = baseUrl + CATALOG_PATH;
    const linkset = [
      { anchor: catalog, item: [{ href: rest }, { href: tools }] },
      {
        anchor: rest,
        'service-desc': [
          link('/openapi.json', 'application/json'),
          link('/openapi.yaml', 'application/yaml'),
        ],
        'service-doc': pages,
        ...status,
      },
      { anchor: tools, 'service-doc': pages, ...status },
    ];
    return reply
      .header('link', `<${catalog}>; rel="api-catalog"`)
      .type(MEDIA_TYPE)
      .serializer(String)
      .send(JSON.stringify({ linkset }));
  });
}
