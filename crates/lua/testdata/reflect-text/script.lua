function ReflectStatus(observedObj)
  return observedObj.status.phase
end
