-- The os library of interpreter scripts: the time of day, in UTC on every machine. The rest of it does not exist.
local now, elapsed = ...

local error, tonumber, floor, format, gsub = error, tonumber, math.floor, string.format, string.gsub

local days = { 'Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday' }
local months = {
  'January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December',
}

-- Days since 1970-01-01 of a day in the Gregorian calendar; the year begins in March.
local function day_number(year, month, day)
  year = year + floor((month - 1) / 12)
  month = (month - 1) % 12 + 1
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  return 365 * year + floor(year / 4) - floor(year / 100) + floor(year / 400) + floor((153 * (month - 3) + 2) / 5) + day - 719469
end

local function calendar(time)
  local number = floor(time / 86400)
  local rest = time - number * 86400
  local year = 1970 + floor(number / 365.2425)
  if number < day_number(year, 1, 1) then
    year = year - 1
  elseif number >= day_number(year + 1, 1, 1) then
    year = year + 1
  end
  local month = 12
  while number < day_number(year, month, 1) do
    month = month - 1
  end
  return {
    year = year, month = month, day = number - day_number(year, month, 1) + 1,
    hour = floor(rest / 3600), min = floor(rest % 3600 / 60), sec = floor(rest % 60),
    wday = (number + 4) % 7 + 1, yday = number - day_number(year, 1, 1) + 1, isdst = false,
  }
end

local function two(number)
  return format('%02d', number)
end

local fields = {
  ['%'] = function() return '%' end,
  a = function(t) return days[t.wday]:sub(1, 3) end,
  A = function(t) return days[t.wday] end,
  b = function(t) return months[t.month]:sub(1, 3) end,
  B = function(t) return months[t.month] end,
  d = function(t) return two(t.day) end,
  H = function(t) return two(t.hour) end,
  I = function(t) return two((t.hour + 11) % 12 + 1) end,
  j = function(t) return format('%03d', t.yday) end,
  m = function(t) return two(t.month) end,
  M = function(t) return two(t.min) end,
  p = function(t) return t.hour < 12 and 'AM' or 'PM' end,
  S = function(t) return two(t.sec) end,
  w = function(t) return format('%d', t.wday - 1) end,
  y = function(t) return two(t.year % 100) end,
  Y = function(t) return format('%d', t.year) end,
  Z = function() return 'UTC' end,
}

local function written(form, t)
  return (gsub(form, '%%(.)', function(field)
    return fields[field] and fields[field](t)
  end))
end

fields.F = function(t) return written('%Y-%m-%d', t) end
fields.T = function(t) return written('%H:%M:%S', t) end
fields.x = function(t) return written('%m/%d/%y', t) end
fields.X = fields.T
fields.c = function(t) return written('%a %b %d %H:%M:%S %Y', t) end

local os = { clock = elapsed }

function os.time(t)
  if t == nil then
    return now()
  end
  local function field(name, default)
    return tonumber(t[name]) or default or error("field '" .. name .. "' is missing in the date table", 0)
  end
  return day_number(field('year'), field('month'), field('day')) * 86400
    + field('hour', 12) * 3600 + field('min', 0) * 60 + field('sec', 0)
end

function os.date(form, time)
  time = tonumber(time) or now()
  if not (time > -1e11 and time < 1e12) then
    error("bad argument #2 to 'date' (out of range)", 0)
  end
  form = gsub(form or '%c', '^!', '')
  local t = calendar(time)
  if form:sub(1, 2) == '*t' then
    return t
  end
  return written(form, t)
end

function os.difftime(later, earlier)
  return later - (earlier or 0)
end

return os
