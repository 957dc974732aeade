-- One of everything that scripts use: the words of Lua 5.1 as gopher-lua has them.
function ReflectStatus(observedObj)
  local words = {}
  for word in string.gmatch("one two  three", "%a+") do
    words[#words + 1] = word
  end
  local first, last, inner = string.find("key=value", "(%w+)=")
  local swapped, count = string.gsub("hello world", "(%w+) (%w+)", "%2 %1")
  local sorted = { 3, 1, 2 }
  table.sort(sorted, function(a, b) return a > b end)
  table.insert(sorted, 1, 9)
  table.remove(sorted)
  local caught, why = pcall(function() local x = nil; return x.y end)
  local handled, message = xpcall(function() error({ code = 7 }) end, function(e) return e.code end)
  return {
    words = words, count = #words, getn = table.getn(words), maxn = table.maxn(words),
    find = { first, last, inner }, swapped = swapped, replaced = count,
    escaped = (string.gsub("a.b.c", "%.", "%%")),
    by_table = (("$a $b"):gsub("%$(%w)", { a = 1, b = false })),
    by_function = (("abc"):gsub("%w", function(c) return c:upper() .. c:byte() end)),
    sorted = sorted, joined = table.concat(sorted, "-", 2), unpacked = { unpack(sorted, 2, 3) },
    number = tostring(4), half = tostring(8 / 3), large = tostring(2 ^ 53), joined_number = "n" .. 4 .. 0.5,
    format = string.format("%5.2f|%-4s|%03d|%q|%x|%s", 3.14159, "ab", 7, "q", 255, true),
    rep = ("ab"):rep(3), reverse = ("abc"):reverse(), sub = ("hello"):sub(-3, -2), char = string.char(72, 105), len = #"four",
    upper = ("a"):upper(), lower = ("A"):lower(),
    floor = math.floor(3.7), max = math.max(1, 5, 3), fmod = math.fmod(7, 3), pow = math.pow(2, 10), huge = math.huge > 1,
    number_of = tonumber("0x10"), base = tonumber("77", 8), none = tostring(tonumber("x")),
    caught = caught, why = why, handled = handled, message = message,
    select = select("#", 1, nil, 3), type = type(words), assert = assert(1, "no"),
    date = os.date("!%Y-%m-%dT%H:%M:%SZ", 951782400), leap = os.date("*t", 951782400),
    time = os.time({ year = 2000, month = 2, day = 29, hour = 0 }), later = os.time() > 1700000000,
    difftime = os.difftime(10, 4), clock = os.clock() >= 0, getenv = tostring(os.getenv),
    drawn = { math.random(6), math.random(6), math.random(10, 10) }, address = tostring(words),
    coroutine = tostring(coroutine), io = tostring(io), debug = tostring(debug), dump = tostring(string.dump),
    refused = select(2, pcall(setmetatable, {}, {})), required = select(2, pcall(require, "os")),
    loaded = require("kube") == require("kube"),
  }
end
