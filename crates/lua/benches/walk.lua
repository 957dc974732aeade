-- Follows the references of a Deployment by hand, as scripts do that want a choice of them.
function GetDependencies(desiredObj)
  local found, seen = {}, {}
  local namespace = desiredObj.metadata.namespace

  local function add(kind, name)
    if name == nil or name == '' or seen[kind .. '/' .. name] then
      return
    end
    seen[kind .. '/' .. name] = true
    found[#found + 1] = { apiVersion = 'v1', kind = kind, namespace = namespace, name = name }
  end

  local spec = desiredObj.spec.template.spec
  for _, each in ipairs(spec.imagePullSecrets or {}) do
    add('Secret', each.name)
  end
  for _, container in ipairs(spec.containers or {}) do
    for _, from in ipairs(container.envFrom or {}) do
      add('ConfigMap', from.configMapRef and from.configMapRef.name)
      add('Secret', from.secretRef and from.secretRef.name)
    end
    for _, variable in ipairs(container.env or {}) do
      local from = variable.valueFrom
      if from ~= nil then
        add('ConfigMap', from.configMapKeyRef and from.configMapKeyRef.name)
        add('Secret', from.secretKeyRef and from.secretKeyRef.name)
      end
    end
  end
  for _, volume in ipairs(spec.volumes or {}) do
    add('ConfigMap', volume.configMap and volume.configMap.name)
    add('Secret', volume.secret and volume.secret.secretName)
  end
  return found
end
