/*
 * What is decided inside Redis. One hash per subject: `minute` and `day` (what is taken), `minuteEnds`, `dayEnds`,
 * `banEnds`, `banLength`, `pardons`. All times are milliseconds of Redis's own clock and all answers relative to it,
 * so that the clocks of two nodes are never compared. Core commands only: the same on Redis, Valkey and in a cluster.
 */

const preamble = `
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keep(ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end
`;

/**
 * Takes from every window or from none. A cost of 0 only reads.
 *
 * ARGV: cost, how long a ban is remembered, how many windows; for each window its name, limit and length. Then, only
 * after an outage, what the node knows: time left of the ban, its length, pardons; for each window count and time
 * left. It counts where it is more than Redis knows, as after a restart.
 * Answers: 1 if admitted, time left of the ban, its length, pardons; then for each window count and time left.
 */
export const takeScript = `${preamble}
local cost, remembered, windows = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local heard = 3 + 3 * windows
local fields = { 'banEnds', 'banLength', 'pardons' }
for i = 1, windows do
  fields[2 * i + 2] = ARGV[3 * i + 1]
  fields[2 * i + 3] = ARGV[3 * i + 1] .. 'Ends'
end
local held = redis.call('HMGET', key, unpack(fields))
local banEnds, banLength, pardons = tonumber(held[1] or 0), tonumber(held[2] or 0), tonumber(held[3] or 0)
local changes, lasts = {}, 0
local function set(field, value)
  changes[#changes + 1] = field
  changes[#changes + 1] = value
end

if ARGV[heard + 1] then
  local left, length = tonumber(ARGV[heard + 1]), tonumber(ARGV[heard + 2])
  local pardonedSince = held[3] and pardons ~= tonumber(ARGV[heard + 3])
  if length > 0 and now + left > banEnds and not pardonedSince then
    banEnds, banLength, lasts = now + left, length, left + remembered
    set('banEnds', banEnds)
    set('banLength', banLength)
  end
end

local admitted = banEnds <= now
local answer = { 0, banEnds - now, banLength, pardons }
for i = 1, windows do
  local limit, length = tonumber(ARGV[3 * i + 2]), tonumber(ARGV[3 * i + 3])
  local count, left = tonumber(held[2 * i + 2] or 0), tonumber(held[2 * i + 3] or 0) - now
  -- More time left than the window is long: the clock was set back, which must not prolong it.
  if left <= 0 or left > length then count, left = 0, 0 end
  local heardCount = tonumber(ARGV[heard + 2 * i + 2] or 0)
  if heardCount > count then
    count = heardCount
    set(fields[2 * i + 2], count)
    if left == 0 then
      left = tonumber(ARGV[heard + 2 * i + 3])
      set(fields[2 * i + 3], now + left)
      lasts = math.max(lasts, left)
    end
  end
  if count + cost > limit then admitted = false end
  answer[2 * i + 3], answer[2 * i + 4] = count, left
end

if admitted then
  answer[1] = 1
  for i = 1, cost > 0 and windows or 0 do
    answer[2 * i + 3] = answer[2 * i + 3] + cost
    set(fields[2 * i + 2], answer[2 * i + 3])
    if answer[2 * i + 4] == 0 then
      local length = tonumber(ARGV[3 * i + 3])
      answer[2 * i + 4] = length
      set(fields[2 * i + 3], now + length)
      lasts = math.max(lasts, length)
    end
  end
end
if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
if lasts > 0 then keep(lasts) end
return answer
`;

/**
 * Bans, unless a ban runs already: two nodes that ban at the same moment make one ban.
 *
 * ARGV: length of a first ban, of the longest, how long a ban is remembered. Answers: time left, length.
 */
export const banScript = `${preamble}
local first, longest, remembered = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local held = redis.call('HMGET', key, 'banEnds', 'banLength')
local ends, length = tonumber(held[1] or 0), tonumber(held[2] or 0)
if ends > now then return { ends - now, length } end
if length > 0 and now < ends + remembered then length = math.min(length * 2, longest) else length = first end
redis.call('HSET', key, 'banEnds', now + length, 'banLength', length)
keep(length + remembered)
return { length, length }
`;

/**
 * Lifts a ban and forgets its length. Counting the pardons lets every node know, also one that remembers the ban.
 *
 * ARGV: how long a ban is remembered. Answers: the pardons so far.
 */
export const pardonScript = `${preamble}
redis.call('HDEL', key, 'banEnds', 'banLength')
local pardons = redis.call('HINCRBY', key, 'pardons', 1)
keep(tonumber(ARGV[1]))
return pardons
`;
