/**
 * Counts in every window or in none, inside Redis. A cost of 0 only reads.
 *
 * A subject is one hash: `minute` and `day` (requests counted), `minuteEnds` and `dayEnds` (milliseconds of Redis's own
 * clock). Replies contain only relative times. Only core commands are used, so that it runs on Redis, on Valkey and in
 * a cluster alike.
 *
 * KEYS[1]: the subject. ARGV: the cost; the number of windows (1: the minute, 2: the minute and the day); then for
 * each window its limit, its length in milliseconds and the count that the caller knows. A lower count in Redis means
 * that Redis has lost data: the script then changes nothing and returns only 2. The caller repeats the call and appends
 * the milliseconds left in each window, and counting continues from the caller's counts.
 *
 * Returns 2 if counts are lost. Otherwise 1 if the request is allowed and 0 if it is denied, followed by the count and
 * the milliseconds left of each window.
 */
export const CONSUME_SCRIPT = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local cost, windows = tonumber(ARGV[1]), tonumber(ARGV[2])
local fields = { 'minute', 'minuteEnds', 'day', 'dayEnds' }
local held = redis.call('HMGET', key, unpack(fields, 1, 2 * windows))
local changes, expiry = {}, 0
local function set(field, value)
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end

local allowed = true
local reply = { 0 }
for i = 1, windows do
  local limit, length, known = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
  local count, left = tonumber(held[2 * i - 1] or 0), tonumber(held[2 * i] or 0) - now
  -- More time left than the window is long: the clock was set back, which must not prolong it.
  if left <= 0 or left > length then count, left = 0, 0 end
  if known > count then
    local knownLeft = tonumber(ARGV[2 + 3 * windows + i])
    if not knownLeft then return { 2 } end
    count = known
    set(fields[2 * i - 1], count)
    if left == 0 or knownLeft < left then
      left = knownLeft
      set(fields[2 * i], now + left)
      expiry = math.max(expiry, left)
    end
  end
  if count + cost > limit then allowed = false end
  reply[2 * i], reply[2 * i + 1] = count, left
end

if allowed then
  reply[1] = 1
  for i = 1, cost > 0 and windows or 0 do
    reply[2 * i] = reply[2 * i] + cost
    set(fields[2 * i - 1], reply[2 * i])
    if reply[2 * i + 1] == 0 then
      local length = tonumber(ARGV[3 * i + 1])
      reply[2 * i + 1] = length
      set(fields[2 * i], now + length)
      expiry = math.max(expiry, length)
    end
  end
end
if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
if expiry > 0 and redis.call('PTTL', key) < expiry then redis.call('PEXPIRE', key, expiry) end
return reply
`;
