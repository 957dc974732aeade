local kube = require("kube")

function ReflectStatus(observedObj)
  return {
    sum = kube.resourceAdd("1Gi", "512Mi", nil),
    cpu = kube.resourceAdd("500m", "0.5", "2"),
    nothing = kube.resourceAdd(),
    amount = kube.getResourceQuantity("1500m"),
    bytes = kube.getResourceQuantity("16Gi"),
    zero = kube.getResourceQuantity(nil),
    negative = pcall(kube.getResourceQuantity, "-1"),
    refused = select(2, pcall(kube.resourceAdd, "1Gi", "many")),
  }
end
