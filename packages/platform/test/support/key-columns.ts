import { definition, list, otherList } from '#operations-under-test';

/** In place of the id of a key */
export const NEW_ID = '0b54e7c0-3f6e-4d3a-9a53-6d8f4ce1a111';

/** What each column of a key can be changed to, in SQL, and as the history shows it. */
export const COLUMN_CHANGES: Readonly<Record<string, readonly [value: string, newValue: string]>> = {
  id: [`'${NEW_ID}'`, NEW_ID],
  name: [`E'two\\nlines'`, 'two\nlines'],
  owner: [`'other'`, 'other'],
  past_owners: [`'{"2001-02-03": "other"}'`, '{"2001-02-03": "other"}'],
  hash: [`decode(repeat('07', 32), 'hex')`, 'changed'],
  hint: [`'${definition.identity.keyPrefix}live_zzzz'`, `${definition.identity.keyPrefix}live_zzzz`],
  previous_hash: [`decode(repeat('08', 32), 'hex')`, 'changed'],
  previous_expires_at: [`'2031-02-03T04:05:06.789Z'`, '2031-02-03T04:05:06.789+00:00'],
  plan: [`'free', per_minute = NULL, per_day = NULL`, 'free'],
  per_minute: ['7', '7'],
  per_day: ['9007', '9007'],
  scopes: [`'{${otherList.scope},${list.scope}}'`, `["${otherList.scope}", "${list.scope}"]`],
  created_at: [`'2001-02-03T04:05:06Z'`, '2001-02-03T04:05:06+00:00'],
  expires_at: [`'2031-02-03T04:05:06Z'`, '2031-02-03T04:05:06+00:00'],
  revoked_at: [`'2031-02-03T04:05:06Z'`, '2031-02-03T04:05:06+00:00'],
  banned_until: [`'2031-02-03T04:05:06Z'`, '2031-02-03T04:05:06+00:00'],
  ban_seconds: ['300', '300'],
};
