function InterpretHealth(observedObj)
  if observedObj.status.ready then
    return true
  end
end
