local kube = require("kube")

function GetComponents(desiredObj)
  local names = {}
  for name in pairs(desiredObj.spec.roles) do
    table.insert(names, name)
  end
  table.sort(names)
  local components = {}
  for _, name in ipairs(names) do
    local role = desiredObj.spec.roles[name]
    table.insert(components, {
      name = string.lower(name),
      replicas = role.replicas,
      replicaRequirements = kube.accuratePodRequirements(role.template),
    })
  end
  return components
end
