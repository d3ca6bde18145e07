import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The id under which a client address is counted: IPv4 whole, IPv6 by its /64 (the usual allocation per customer,
 * without which one machine could be 2^64 callers), an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2) as the IPv4
 * address.
 *
 * Everything that is not an address, such as the peer of a Unix socket, shares the id `unknown`.
 */
export function addressId(address: string | undefined): string {
  const version = address === undefined ? 0 : isIP(address);
  if (address === undefined || version === 0) return 'unknown';
  if (version === 4) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const prefix = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${prefix.join(':')}::/64`;
}
