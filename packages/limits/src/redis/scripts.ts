/**
 * Decides on a batch of calls inside Redis, one after the other. Each call counts in every window or in none; a call that costs
 * 0 only reads.
 *
 * A subject is one hash with two fields for each window, such as `minute` (requests counted) and `minuteEnds` (milliseconds of
 * Redis's own clock). Foreign data in its place, or in that of a window, counts as nothing: the subject starts anew, and other
 * subjects are unaffected. Replies contain only relative times. Only core commands are used, so that it runs on Redis, on
 * Valkey and in a cluster alike.
 *
 * KEYS: the subject of each call. ARGV[1]: the calls in JSON, each `[cost, restarts, minute, …]` with the windows that the
 * subject has. `restarts` is 1 if windows without room count from 0 again, and 0 if not. A window is `[number, limit, length in
 * milliseconds, count, milliseconds left]`. Its number is its place among the names, from 1: names would cost Redis a fifth to
 * a half more per call. The last two are what the caller knows: a lower count in Redis means that Redis has lost data, and
 * counting continues from the caller's.
 *
 * Returns JSON, which costs both sides less than a reply of many numbers: for each call 1 if it is allowed and 0 if it is
 * denied, then `[count, milliseconds left]` of each of its windows.
 *
 * The script is finished but for the names. With the windows `minute` and `day`, HMGET reads `'minute','minuteEnds','day',
 * 'dayEnds'`, and the function `read` returns
 *
 *     { window('minute', held[1], held[2]),window('day', held[3], held[4]), expiry = 0 }
 *
 * @param names of the windows, each of letters
 */
export function createConsumeScript(names: readonly string[]): string {
  const fields = names.flatMap((name) => [`'${name}'`, `'${name}Ends'`]);
  /** What HMGET has read of the fields, as windows */
  const read = names.map((name, n) => `window('${name}', held[${2 * n + 1}], held[${2 * n + 2}])`);
  return `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local subjects, replies = {}, {}

-- nil for what this script does not write, such as a text, a fraction, nan or inf
local function whole(text)
  local number = tonumber(text or 0)
  return number and number >= 0 and number < 2^53 and number % 1 == 0 and number or nil
end

local function window(name, count, ends)
  count, ends = whole(count), whole(ends)
  if not count or not ends then count, ends = 0, 0 end
  return { name = name, count = count, left = ends - now }
end

local function read(key)
  local held = redis.pcall('HMGET', key, ${fields})
  if held.err and held.err:find('WRONGTYPE', 1, true) then
    -- Which deletes it
    redis.call('PEXPIRE', key, 0)
    held = {}
  elseif held.err then
    redis.call('HMGET', key, ${fields})
  end
  return { ${read}, expiry = 0 }
end

local function start(subject, window, left)
  window.left, window.isNew = left, true
  subject.expiry = math.max(subject.expiry, left)
end

for i, call in ipairs(cjson.decode(ARGV[1])) do
  local key, cost, restarts = KEYS[i], call[1], call[2] == 1
  local subject = subjects[key] or read(key)
  subjects[key] = subject
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
  local reply = { allowed }
  for w = 3, #call do
    local window = subject[call[w][1]]
    if cost > 0 and (allowed == 1 or restarts) then
      window.count, subject.changed = allowed == 1 and window.count + cost or 0, true
      if window.left == 0 then start(subject, window, call[w][3]) end
    end
    reply[w - 1] = { window.count, window.left }
  end
  replies[i] = reply
end

for key, subject in pairs(subjects) do
  local fields = {}
  for _, window in ipairs(subject) do
    if subject.changed and window.left > 0 then
      local n = #fields
      fields[n + 1], fields[n + 2] = window.name, window.count
      -- The end of one that goes on is stored already.
      if window.isNew then fields[n + 3], fields[n + 4] = window.name .. 'Ends', now + window.left end
    end
  end
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
  if subject.expiry > 0 and redis.call('PTTL', key) < subject.expiry then
    redis.call('PEXPIRE', key, subject.expiry)
  end
end
return cjson.encode(replies)
`;
}

/** What the script returns for each call, in JSON */
export type ScriptReply = readonly [
  allowed: number,
  ...windows: (readonly [count: number, msLeft: number])[],
];
