function ReflectStatus(observedObj)
  return observedObj.status
end
