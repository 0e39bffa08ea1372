package policy

// Sources of the built-in profiles, by short name. Where a product is described by several, the one nearest to what the
// driver shows is named.
const (
	srcA100   = `NVIDIA, "NVIDIA A100 Tensor Core GPU Architecture": 12 third-generation NVLinks, PCIe Gen 4`
	srcDGXA   = `NVIDIA, "DGX A100 User Guide" DU-09821-001`
	srcH100   = `NVIDIA, "NVIDIA H100 Tensor Core GPU Architecture": 18 fourth-generation NVLinks, PCIe Gen 5`
	srcDGXH   = `NVIDIA, "DGX H100/H200 User Guide", component descriptions`
	srcH200   = `mlcommons/inference_results_v4.1 closed/NVIDIA/systems/H200-SXM-141GBx8_TRT_MaxQ.json: 18x 4th Gen NVLink, PCIe Gen5 x16, 2 TB, 2 x 56 cores`
	srcB200   = `NVIDIA, "DGX B200 User Guide", component descriptions; docs.vultr.com HGX B200 hardware overview: NV18 between all pairs`
	srcGB200  = `mlcommons/inference_results_v6.1 closed/Crusoe/systems/GB200-NVL72_GB200-186GB_aarch64x16_Dynamo.json: 4 GPUs a node, NV18, NVLink-C2C, 144 cores, 1.87 TB`
	srcLinks  = `NVIDIA, health validation reference, nvlink_bandwidth_count_speed: 18 links`
	srcL40S   = `NVIDIA, "L40S" data sheet: PCIe Gen4 x16, 48 GB GDDR6 with ECC, no NVLink`
	srcA10    = `NVIDIA, "A10" data sheet: PCIe Gen4 x16, 24 GB GDDR6 with ECC, no NVLink`
	srcRTX    = `NVIDIA RTX data sheets: PCIe x16; ECC is the owner's choice and off as delivered`
	srcHGX    = `NVIDIA HGX boards have 8 or 4 GPUs; clouds sell 1, 2, 4 and 8 of them`
	srcIB     = `leptonai/gpud, expected InfiniBand ports by product`
	srcMargin = `NVIDIA/NVSentinel gpu-health-monitor, offset to the thermal margin`
	srcCopies = `Azure/azurehpc-health-checks, check_gpu_bw of the product's profile`
	srcOwn    = `the driver's own thresholds (nvmlDeviceGetTemperatureThreshold); absolute ones differ by cooling`
)

// own says of a product that its thermal limits are those its driver gives.
var own = Fact{What: "core and memory limits, °C", Value: "the GPU's own", Source: srcOwn}

// hgx is what HGX boards have in common. A node that shows four may be half of a board, with links off.
func hgx(name string, sku []string, facts ...Fact) Profile {
	return Profile{Name: name, SKU: sku, Sizes: []int{1, 2, 4, 8}, Board: []int{8},
		Facts: append([]Fact{{What: "GPUs a node", Value: "8 or 4; 1 and 2 in virtual machines", Source: srcHGX}}, facts...)}
}

var profiles = []Profile{
	hgx("HGX A100", []string{"A100 SXM4"},
		Fact{What: "NVLinks on, a GPU", Value: "12", Path: "nvlink.links", Whole: true, Source: srcA100},
		Fact{What: "NVLink version", Value: "3", Source: srcA100},
		Fact{What: "PCIe", Value: "Gen 4 x16", Source: srcA100},
		Fact{What: "copies to and from the host below which others act, GB/s", Value: "23", Source: srcCopies},
		own,
		Fact{What: "InfiniBand ports × Gb/s", Value: "8 × 200 for compute in a DGX; 1 × 200 in gpud", Source: srcDGXA + "; " + srcIB},
		Fact{What: "processors, memory", Value: "128 cores, 1 or 2 TB in a DGX", Source: srcDGXA}),
	hgx("HGX H100", []string{"H100 80GB HBM3", "H100 SXM5"},
		Fact{What: "NVLinks on, a GPU", Value: "18", Path: "nvlink.links", Whole: true, Source: srcH100 + "; " + srcLinks},
		Fact{What: "NVLink version", Value: "4", Source: srcH100},
		Fact{What: "PCIe", Value: "Gen 5 x16", Source: srcH100},
		Fact{What: "copies to and from the host below which others act, GB/s", Value: "48", Source: srcCopies},
		own,
		Fact{What: "thermal margin at which others act, °C", Value: "2", Source: srcMargin},
		Fact{What: "InfiniBand ports × Gb/s", Value: "8 × 400", Source: srcIB + "; " + srcDGXH},
		Fact{What: "processors, memory", Value: "112 cores, 2 TB in a DGX; 96 cores, 1,915,071 MB in Azure's ND H100 v5", Source: srcDGXH + "; Azure/azurehpc-health-checks"}),
	hgx("HGX H200", []string{"H200"},
		Fact{What: "NVLinks on, a GPU", Value: "18", Path: "nvlink.links", Whole: true, Source: srcH200},
		Fact{What: "NVLink version", Value: "4", Source: srcH200},
		Fact{What: "PCIe", Value: "Gen 5 x16", Source: srcH200},
		Fact{What: "copies to and from the host below which others act, GB/s", Value: "55", Source: srcCopies},
		own,
		Fact{What: "InfiniBand ports × Gb/s", Value: "8 × 400", Source: srcIB},
		Fact{What: "processors, memory", Value: "112 cores, 2 TB in a DGX", Source: srcH200}),
	hgx("HGX B200", []string{"B200"},
		Fact{What: "NVLinks on, a GPU", Value: "18", Path: "nvlink.links", Whole: true, Source: srcB200},
		Fact{What: "NVLink version", Value: "5", Source: srcB200},
		Fact{What: "PCIe", Value: "x16, what GPU and port can do", Source: srcB200},
		own,
		Fact{What: "thermal margin at which others act, °C", Value: "3", Source: srcMargin},
		Fact{What: "InfiniBand ports × Gb/s", Value: "8 × 400", Source: srcIB},
		Fact{What: "processors, memory", Value: "112 cores, 2 to 4 TB in a DGX", Source: srcB200}),
	{Name: "GB200 NVL72", SKU: []string{"GB200"}, Sizes: []int{2, 4}, Board: []int{4}, Facts: []Fact{
		{What: "GPUs a node", Value: "4, a compute tray", Source: srcGB200},
		{What: "NVLinks on, a GPU", Value: "18", Path: "nvlink.links", Whole: true, Source: srcGB200 + "; " + srcLinks},
		{What: "NVLink version", Value: "5", Source: srcGB200},
		{What: "PCIe", Value: "none to the host, which is reached by NVLink-C2C", Source: srcGB200},
		own,
		{What: "thermal margin at which others act, °C", Value: "2", Source: srcMargin},
		{What: "InfiniBand ports × Gb/s", Value: "8 × 400 in gpud, 4 network cards a tray", Source: srcIB + "; " + srcGB200},
		{What: "processors, memory", Value: "144 cores, 1.87 TB", Source: srcGB200},
	}},
	{Name: "L40S", SKU: []string{"L40S"}, Facts: []Fact{
		{What: "GPUs a node", Value: "any number", Source: "cards, as many as there are slots"},
		{What: "NVLinks, a GPU", Value: "none", Source: srcL40S},
		{What: "PCIe", Value: "Gen 4 x16", Source: srcL40S},
		own,
		{What: "thermal margin at which others act, °C", Value: "2", Source: srcMargin},
	}},
	{Name: "A10", SKU: []string{"A10"}, Facts: []Fact{
		{What: "GPUs a node", Value: "any number", Source: "cards, as many as there are slots"},
		{What: "NVLinks, a GPU", Value: "none", Source: srcA10},
		{What: "PCIe", Value: "Gen 4 x16", Source: srcA10},
		own,
	}},
	{Name: "RTX class", SKU: []string{"RTX"}, Facts: []Fact{
		{What: "GPUs a node", Value: "any number", Source: "cards, as many as there are slots"},
		{What: "ECC must be on", Value: "false", Path: "ecc.require_enabled", Source: srcRTX},
		{What: "NVLinks, a GPU", Value: "none since Ada; a bridge between two cards before", Source: srcRTX},
		{What: "PCIe", Value: "x16; Gen 4, Blackwell Gen 5", Source: srcRTX},
		own,
	}},
}
