import type { Database } from '../connections/client.js';
import { createDurations } from './durations.js';

/**
 * How long queries and commands take. The connections do not create these themselves: the commands of the command line have no
 * metrics, and loading prom-client would be a sixth of their time.
 *
 * @param prefix how the names of metrics start
 */
export function measureQueries(database: Pick<Database, 'observeQueries'>, prefix: string) {
  const ofDatabase = createDurations(
    `${prefix}database_query_duration_seconds`,
    'How long queries took, including failed ones; one statement may serve several requests',
    ['statement'],
  );
  database.observeQueries((seconds, statement) => ofDatabase.observe({ statement }, seconds));
  const ofRedis = createDurations(
    `${prefix}redis_command_duration_seconds`,
    'How long commands to Redis took, including failed ones',
  );
  return { ofDatabase, ofRedis };
}
