function Retain(desiredObj, observedObj)
  desiredObj.spec.fieldFoo = observedObj.spec.fieldFoo
  desiredObj.spec.status = {}
  for key, value in pairs(observedObj.metadata.annotations or {}) do
    if string.match(key, "^injected%.example%.com/") then
      desiredObj.metadata.annotations[key] = value
    end
  end
  return desiredObj
end
