import { WINDOWS, type WindowName } from '#store/plans.js';

const NAMES = WINDOWS.map(({ name }) => name);
const FIELDS = NAMES.flatMap((name) => [`'${name}'`, `'${name}Ends'`]);
/** What HMGET has read of FIELDS, as windows */
const READ_WINDOWS = NAMES.map((name, n) => `window('${name}', held[${2 * n + 1}], held[${2 * n + 2}])`);

/** By which a call names a window: names would cost Redis a fifth to a half more per call. */
export const WINDOW_NUMBERS = Object.fromEntries(NAMES.map((name, n) => [name, n + 1])) as Readonly<
  Record<WindowName, number>
>;

/**
 * Decides on a batch of calls inside Redis, one after the other. Each counts in every window or in none; one that costs
 * 0 only reads.
 *
 * A subject is one hash with two fields for each window, such as `minute` (requests counted) and `minuteEnds` (milliseconds
 * of Redis's own clock), and with `denied` and `deniedEnds` for the requests denied, by all callers of the script together,
 * in a minute that starts with the first of them. Replies contain only relative times. Only core commands are used, so that
 * it runs on Redis, on Valkey and in a cluster alike.
 *
 * KEYS: the subject of each call. ARGV[1]: the calls in JSON, each `[cost, denied, minute, …]` with the windows that the
 * subject has. `denied` are the requests that the caller has denied and not told yet. Once their sum has reached the limit of
 * the minute, they are counted from 0 again: whoever gets that sum acts on it. A window is `[number, limit, length in
 * milliseconds, count, milliseconds left]`. The last two are what the caller knows: a lower count in Redis means that Redis
 * has lost data, and counting continues from the caller's.
 *
 * Returns JSON, which costs both sides less than a reply of many numbers: for each call 1 if it is allowed and 0 if it is
 * denied, then `[sum of what was denied, milliseconds left of its minute]`, or 0 if the call tells of none, then
 * `[count, milliseconds left]` of each of its windows.
 */
export const CONSUME_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local subjects, replies = {}, {}

local function window(name, count, ends)
  return { name = name, count = tonumber(count or 0), left = tonumber(ends or 0) - now }
end

local function read(key)
  local held = redis.call('HMGET', key, ${FIELDS})
  return { ${READ_WINDOWS}, expiry = 0 }
end

local function start(subject, window, left)
  window.left = left
  subject.expiry = math.max(subject.expiry, left)
end

-- Few calls tell of denied requests, so only those read their window, which comes after the others.
local function addDenied(key, subject, told, limit)
  local n = ${NAMES.length + 1}
  local denied = subject[n] or window('denied', unpack(redis.call('HMGET', key, 'denied', 'deniedEnds')))
  subject[n] = denied
  if denied.left <= 0 or denied.left > 60000 then
    denied.count = 0
    start(subject, denied, 60000)
  end
  local sum = denied.count + told
  denied.count, subject.changed = sum, true
  if sum >= limit then denied.count = 0 end
  return { sum, denied.left }
end

for i, call in ipairs(cjson.decode(ARGV[1])) do
  local key, cost, told = KEYS[i], call[1], call[2]
  local subject = subjects[key] or read(key)
  subjects[key] = subject
  local denied = told > 0 and addDenied(key, subject, told, call[3][2]) or 0
  local allowed = 1
  for w = 3, #call do
    local n, limit, length, known, knownLeft = unpack(call[w])
    local window = subject[n]
    if window.left <= 0 then window.count, window.left = 0, 0 end
    -- The clock was set back: the window is prolonged, but ends.
    if window.left > length then
      start(subject, window, length)
      subject.changed = true
    end
    if known > window.count then
      window.count, subject.changed = known, true
      if window.left == 0 or knownLeft < window.left then start(subject, window, knownLeft) end
    end
    if window.count + cost > limit then allowed = 0 end
  end
  local reply = { allowed, denied }
  for w = 3, #call do
    local window = subject[call[w][1]]
    if allowed == 1 and cost > 0 then
      window.count, subject.changed = window.count + cost, true
      if window.left == 0 then start(subject, window, call[w][3]) end
    end
    reply[w] = { window.count, window.left }
  end
  replies[i] = reply
end

for key, subject in pairs(subjects) do
  local fields = {}
  for _, window in ipairs(subject) do
    if subject.changed and window.left > 0 then
      local n = #fields
      fields[n + 1], fields[n + 2] = window.name, window.count
      fields[n + 3], fields[n + 4] = window.name .. 'Ends', now + window.left
    end
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  if subject.expiry > 0 and redis.call('PTTL', key) < subject.expiry then
    redis.call('PEXPIRE', key, subject.expiry)
  end
end
return cjson.encode(replies)
`;

/** What CONSUME_SCRIPT returns for each call, in JSON */
export type ScriptReply = readonly [
  allowed: number,
  denied: readonly [sum: number, msLeft: number] | 0,
  ...windows: (readonly [count: number, msLeft: number])[],
];
