function InterpretHealth(observedObj)
  for _, condition in ipairs(observedObj.status.conditions) do
    if condition.type == "Ready" then
      return condition.status == "True"
    end
  end
  return false
end
