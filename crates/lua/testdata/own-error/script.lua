function GetDependencies(desiredObj)
  if desiredObj.spec.sidecar == nil then
    error("spec.sidecar is missing")
  end
end
