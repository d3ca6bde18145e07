/**
 * Decides on a batch of calls inside Redis, one after the other. Each counts in every window or in none; one that costs
 * 0 only reads.
 *
 * A subject is one hash: `minute` and `day` (requests counted), `minuteEnds` and `dayEnds` (milliseconds of Redis's own
 * clock). Replies contain only relative times. Only core commands are used, so that it runs on Redis, on Valkey and in
 * a cluster alike.
 *
 * KEYS: the subject of each call. ARGV[1]: the calls in JSON, each `[cost, minute, day]` or `[cost, minute]`, where a
 * window is `[limit, length in milliseconds, count, milliseconds left]`. The last two are what the caller knows: a lower
 * count in Redis means that Redis has lost data, and counting continues from the caller's.
 *
 * Returns JSON, which costs both sides less than a reply of many numbers: for each call 1 if it is allowed and 0 if it is
 * denied, followed by `[count, milliseconds left]` of each of its windows.
 */
export const CONSUME_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local subjects, replies = {}, {}

local function read(key)
  local held = redis.call('HMGET', key, 'minute', 'minuteEnds', 'day', 'dayEnds')
  local function window(name, count, ends)
    return { name = name, count = tonumber(count or 0), left = tonumber(ends or 0) - now }
  end
  return { window('minute', held[1], held[2]), window('day', held[3], held[4]), expiry = 0 }
end

local function start(subject, window, left)
  window.left = left
  subject.expiry = math.max(subject.expiry, left)
end

for i, call in ipairs(cjson.decode(ARGV[1])) do
  local key, cost = KEYS[i], call[1]
  local subject = subjects[key] or read(key)
  subjects[key] = subject
  local allowed = 1
  for w = 2, #call do
    local window, limit, length, known, knownLeft = subject[w - 1], unpack(call[w])
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
  for w = 2, #call do
    local window = subject[w - 1]
    if allowed == 1 and cost > 0 then
      window.count, subject.changed = window.count + cost, true
      if window.left == 0 then start(subject, window, call[w][2]) end
    end
    reply[w] = { window.count, window.left }
  end
  replies[i] = reply
end

for key, subject in pairs(subjects) do
  for _, window in ipairs(subject) do
    if subject.changed and window.left > 0 then
      redis.call('HSET', key, window.name, window.count, window.name .. 'Ends', now + window.left)
    end
  end
  if subject.expiry > 0 and redis.call('PTTL', key) < subject.expiry then
    redis.call('PEXPIRE', key, subject.expiry)
  end
end
return cjson.encode(replies)
`;

/** What CONSUME_SCRIPT returns for each call, in JSON */
export type ScriptReply = readonly [
  allowed: number,
  ...windows: (readonly [count: number, msLeft: number])[],
];
