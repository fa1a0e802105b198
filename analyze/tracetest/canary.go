package tracetest

// Canary is a secret text planted in an export, in a cell that real exports fill with something private or that no
// report has any use for.
type Canary struct {
	Table, Column string
	Text          string
}

// Canaries plants a text of its own in every text column of the builder's schema version that nsys fills, and returns
// them all: no output of a program that reads the export may contain one. Call it last.
//
// secret makes the text for a cell; it is called once for each, with the name of a row's property after the column in
// brackets where one column has several, e.g. "value[DeviceEnvironment]". nil makes texts such as
// "canary:TARGET_INFO_GPU.uuid".
//
// Left alone are the texts a report is there to show or may parse: names of kernels, API calls, NVTX ranges, processes,
// threads and GPU models, versions, and the session's times.
func (b *Builder) Canaries(secret func(table, column string) string) []Canary {
	c := &canaries{b: b, secret: secret}
	if c.secret == nil {
		c.secret = func(table, column string) string { return "canary:" + table + "." + column }
	}
	c.metadata()
	c.strings()
	c.devices()
	c.events()
	return c.planted
}

type canaries struct {
	b       *Builder
	secret  func(table, column string) string
	planted []Canary
}

// text makes and notes the text for a cell.
func (c *canaries) text(table, column string) string {
	s := c.secret(table, column)
	c.planted = append(c.planted, Canary{table, column, s})
	return s
}

// property plants a name-value row.
func (c *canaries) property(table, name, prefix, suffix string) {
	if !c.b.has(table, "value") {
		return
	}
	value := prefix + c.text(table, "value["+name+"]") + suffix
	switch table {
	case "META_DATA_CAPTURE":
		c.b.CaptureMeta(name, value)
	case "META_DATA_EXPORT", "EXPORT_META_DATA":
		c.b.ExportMeta(name, value)
	default:
		c.b.Env(name, value)
	}
}

func (c *canaries) metadata() {
	const env = "TARGET_INFO_SYSTEM_ENV"
	c.property(env, "DeviceEnvironment", "PATH=/usr/bin\nHF_TOKEN=", "\nHOME=/root\n")
	c.property(env, "HostName", "", ".example.com")
	if c.b.has(env, "devStateName") {
		c.b.Row(env, Row{
			"globalVid": Int(machineID(0, 1)), "devStateName": Text(c.text(env, "devStateName")),
			"name": Text(c.text(env, "name")), "nameEnum": Int(0), "value": Text(c.text(env, "value")),
		})
	}
	for _, name := range []string{"PROCESS_0:COMMAND_LINE", "PROCESS_0:WORKING_DIRECTORY",
		"NVTX_OPTIONS:NVTX_DOMAIN_FILTER_STRING", "TARGET_HOST"} {
		c.property("META_DATA_CAPTURE", name, "/usr/bin/python --api-key=", " serve")
	}
	for _, table := range []string{"META_DATA_EXPORT", "EXPORT_META_DATA"} {
		for _, name := range []string{"EXPORT_PARAM_TABLES_TO_EXPORT", "DERIVED_FROM", "EXPORT_COMMAND_LINE"} {
			c.property(table, name, "", ".sqlite")
		}
	}
}

// strings plants what the string table holds beside names: captured output, file paths, leftovers.
func (c *canaries) strings() {
	b := c.b
	if !b.has("StringIds", "value") {
		return
	}
	for _, what := range []string{"unused", "command line", "path"} {
		b.Unused(c.text("StringIds", "value["+what+"]"))
	}
	if b.has("ProcessStreams", "contentId") && len(b.processes) > 0 {
		b.Row("ProcessStreams", Row{
			"globalPid":  Int(b.processes[0].GlobalPid()),
			"filenameId": ID("/srv/" + c.text("ProcessStreams", "filenameId")),
			"contentId":  ID("Authorization: Bearer " + c.text("ProcessStreams", "contentId") + "\n"),
		})
	}
}

func (c *canaries) devices() {
	const gpu = "TARGET_INFO_GPU"
	if len(c.b.gpus) == 0 {
		c.b.GPU(GPU{})
	}
	n := 0
	for _, e := range c.b.rows {
		if e.table != gpu {
			continue
		}
		for _, col := range []string{"busLocation", "uuid", "ctxswDevPath", "ctrlDevPath"} {
			if c.b.has(gpu, col) {
				e.row[col] = Text(c.text(gpu, col))
			}
		}
		if n < len(c.b.gpus) && c.b.has("TARGET_INFO_CUDA_DEVICE", "uuid") {
			c.b.gpus[n].UUID = c.text("TARGET_INFO_CUDA_DEVICE", "uuid")
		}
		n++
	}
}

// events plants in the tables of events, in existing rows where there are some so that readers meet them.
func (c *canaries) events() {
	b := c.b
	nvtx := Row{}
	for _, col := range []string{"jsonText", "binaryData"} {
		if b.has("NVTX_EVENTS", col) {
			nvtx[col] = Text(`{"password": "` + c.text("NVTX_EVENTS", col) + `"}`)
		}
	}
	if b.has("NVTX_EVENTS", "jsonTextId") {
		nvtx["jsonTextId"] = ID(`{"user": "` + c.text("NVTX_EVENTS", "jsonTextId") + `"}`)
	}
	if b.has("NVTX_EVENTS", "start") && !c.amend("NVTX_EVENTS", nvtx) {
		b.NVTX(NVTX{Type: Mark, End: Open, Text: "mark", Set: nvtx})
	}
	const tensor = "tensorSizeMinusOneElements"
	if b.has("CUPTI_ACTIVITY_KIND_KERNEL", tensor) && c.first("CUPTI_ACTIVITY_KIND_KERNEL") != nil {
		c.amend("CUPTI_ACTIVITY_KIND_KERNEL", Row{tensor: Text(c.text("CUPTI_ACTIVITY_KIND_KERNEL", tensor))})
	}
	if b.has("DIAGNOSTIC_EVENT", "text") {
		b.Diagnostic(Diagnostic{Source: 2, Severity: 1, Text: "Launching '/usr/bin/python --token " +
			c.text("DIAGNOSTIC_EVENT", "text") + "'"})
	}
	if b.has("NVTX_PAYLOAD_SCHEMAS", "name") {
		b.Row("NVTX_PAYLOAD_SCHEMAS", Row{"domainId": Int(0), "schemaId": Int(1),
			"name": Text(c.text("NVTX_PAYLOAD_SCHEMAS", "name")), "numEntries": Int(1)})
		b.Row("NVTX_PAYLOAD_SCHEMA_ENTRIES", Row{
			"domainId": Int(0), "schemaId": Int(1), "idx": Int(0), "flags": Int(0),
			"name":        Text(c.text("NVTX_PAYLOAD_SCHEMA_ENTRIES", "name")),
			"description": Text(c.text("NVTX_PAYLOAD_SCHEMA_ENTRIES", "description")),
		})
	}
	if b.has("OSRT_FILE_ACCESS_DESCRIPTORS", "filePath") {
		b.Row("OSRT_FILE_ACCESS_DESCRIPTORS", Row{
			"fileAccessId": Int(1), "processId": Int(0), "openedAt": Int(0), "closedAt": Int(1),
			"filePath": Text("/home/" + c.text("OSRT_FILE_ACCESS_DESCRIPTORS", "filePath")),
		})
	}
}

// first is the first row of a table, or nil.
func (c *canaries) first(table string) Row {
	for _, e := range c.b.rows {
		if e.table == table {
			return e.row
		}
	}
	return nil
}

// amend sets columns of the table's first row, and says whether there is one.
func (c *canaries) amend(table string, set Row) bool {
	row := c.first(table)
	if row != nil {
		row.with(set)
	}
	return row != nil
}
