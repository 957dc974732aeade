-- What a script finds: the libraries of Karmada's interpreter, those functions wrapped that may run long inside the
-- virtual machine's own code. Run before each call of a script, in an environment that is empty but for _G and becomes
-- the script's: it is given the virtual machine's own globals, which no script sees, and the functions made in Rust.
local natives, tick, too_large, checked, find, match, gmatch, gsub, number_text, kube, clock, largest = ...

local error, getmetatable, next, pcall, select, setmetatable, tonumber, tostring, type, unpack =
  natives.error, natives.getmetatable, natives.next, natives.pcall, natives.select, natives.setmetatable, natives.tonumber,
  natives.tostring, natives.type, natives.unpack

-- The libraries are tables of this call's own, and the one that methods of strings are found in is among them.
local function copied(from)
  local to = {}
  for key, value in next, from do
    to[key] = value
  end
  return to
end

math, string, table = copied(natives.math), copied(natives.string), copied(natives.table)
getmetatable('').__index = string

for _, name in next, { '_VERSION', 'assert', 'error', 'ipairs', 'next', 'pairs', 'select', 'type' } do
  _G[name] = natives[name]
end

local floor = math.floor

-- Functions that would lead out of the sandbox: refused by name, as Karmada does.
for _, name in next, {
  'collectgarbage', 'dofile', 'getfenv', 'getmetatable', 'load', 'loadfile', 'loadstring', 'module', 'newproxy',
  'rawequal', 'rawget', 'rawset', 'setfenv', 'setmetatable',
} do
  _G[name] = function()
    error(name .. ' is not available to interpreter scripts', 0)
  end
end

-- Nothing reads what a script prints.
function print() end

-- An address would differ from call to call, and with it an answer that holds it.
local function text(value)
  local kind = type(value)
  if kind == 'number' then
    return number_text(value)
  elseif kind == 'table' or kind == 'function' or kind == 'userdata' then
    return kind
  end
  return tostring(value)
end

_G.tostring = text

-- Reaching a limit is not an error that a script can catch: checked raises it again. The results travel in a table, since
-- the virtual machine's pcall itself has no room for more than some twenty.
local function packed(...)
  return { count = select('#', ...), ... }
end

local function called(f, ...)
  return packed(f(...))
end

local function attempt(f, ...)
  return checked(pcall(called, f, ...))
end

function _G.pcall(f, ...)
  local ok, result = attempt(f, ...)
  if ok then
    return true, unpack(result, 1, result.count)
  end
  return false, result
end

-- The handler runs after the failed function is left, not on top of it: it cannot tell, there being no debug library.
-- Handlers on top of failures can nest so that a limit is reached over and over on the way out.
function _G.xpcall(f, handler)
  local ok, result = attempt(f)
  if ok then
    return true, unpack(result, 1, result.count)
  end
  local is_handled, said = attempt(handler, result)
  if is_handled then
    return false, unpack(said, 1, said.count)
  end
  return false, said
end

-- The virtual machine's own overflows for ranges of 2^31, and an optimised build then writes past its stack.
function _G.unpack(t, i, j)
  i, j = tonumber(i or 1), tonumber(j or #t)
  local is_in_range = i and j and i > -2 ^ 31 and i < 2 ^ 31 and j > -2 ^ 31 and j < 2 ^ 31 - 1
  if not is_in_range or j - i > 7900 then
    error('too many results to unpack', 0)
  end
  return unpack(t, i, j)
end

function _G.tonumber(...)
  tick()
  return tonumber(...)
end

-- string

local byte, char, format, lower, rep, reverse, upper =
  string.byte, string.char, string.format, string.lower, string.rep, string.reverse, string.upper

string.dump, string.gfind = nil, nil
string.find, string.match, string.gsub = find, match, gsub

function string.gmatch(s, pattern)
  local start = 0
  local function step(next_start, ...)
    start = next_start
    return ...
  end
  return function()
    if start then
      return step(gmatch(s, pattern, start))
    end
  end
end

local function bounded(s, times)
  tick()
  if type(s) == 'number' then
    s = text(s)
  end
  if type(s) == 'string' and not (#s * times <= largest) then
    too_large()
  end
  return s
end

function string.lower(s)
  return lower(bounded(s, 1))
end

function string.upper(s)
  return upper(bounded(s, 1))
end

function string.reverse(s)
  return reverse(bounded(s, 1))
end

function string.rep(s, n)
  n = tonumber(n) or error("bad argument #2 to 'rep' (number expected)", 0)
  s = bounded(s, n)
  if n <= 0 or s == '' then
    return ''
  end
  return rep(s, n)
end

function string.format(form, ...)
  tick()
  local values, count = { ... }, select('#', ...)
  for i = 1, count do
    local kind = type(values[i])
    if kind ~= 'number' and kind ~= 'string' then
      values[i] = text(values[i])
    end
  end
  return format(bounded(form, 1), unpack(values, 1, count))
end

-- table

local concat, insert, maxn, remove, sort = table.concat, table.insert, table.maxn, table.remove, table.sort

table.foreach, table.foreachi, table.setn = nil, nil, nil

function table.getn(t)
  return #t
end

function table.concat(...)
  tick()
  return concat(...)
end

function table.maxn(t)
  tick()
  return maxn(t)
end

function table.remove(...)
  tick()
  return remove(...)
end

function table.insert(t, ...)
  tick()
  if select('#', ...) == 2 then
    local at = tonumber((...))
    if not at or not (at >= 1 and at < 2 ^ 31) then
      error("bad argument #2 to 'insert' (position out of bounds)", 0)
    end
  end
  return insert(t, ...)
end

-- With a function of Lua as comparison the virtual machine looks at the clock while it sorts.
function table.sort(t, is_less)
  tick()
  return sort(t, is_less and function(a, b)
    return is_less(a, b)
  end or function(a, b)
    return a < b
  end)
end

-- math: numbers that are the same in every call, so that the same object gets the same answer.

local seed = 20261122

local function draw()
  seed = (seed * 16807) % 2147483647
  return (seed - 1) / 2147483646
end

math.mod = math.fmod

function math.randomseed(n)
  seed = floor(tonumber(n) or 0) % 2147483646 + 1
end

function math.random(low, high)
  local drawn = draw()
  if not low then
    return drawn
  end
  if not high then
    low, high = 1, low
  end
  if not (low <= high) then
    error("bad argument to 'random' (interval is empty)", 0)
  end
  return low + floor(drawn * (high - low + 1))
end

-- os is rarely asked for, and so made when it is. A script cannot see the metatable.

setmetatable(_G, {
  __index = function(globals, name)
    if name == 'os' then
      globals.os = clock()
      return globals.os
    end
  end,
})

-- package: kube is all there is to require.

local loaded = {}

package = { loaded = loaded, preload = {}, path = '', cpath = '' }

function require(name)
  if loaded[name] == nil then
    if name ~= 'kube' then
      error("only 'kube' can be required", 0)
    end
    loaded[name] = kube()
  end
  return loaded[name]
end
