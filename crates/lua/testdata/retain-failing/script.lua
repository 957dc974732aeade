function Retain(desiredObj, observedObj)
  desiredObj.spec.a = observedObj.spec.missing.field
  return desiredObj
end
